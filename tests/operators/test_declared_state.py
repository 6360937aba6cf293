"""Declared state is all the state there is: every attribute that changes while an operator runs is a declared field.

Every query of the catalogue runs on a random stream. In the middle its snapshot is restored into fresh operators, which
then run on next to the first ones: both must answer the same and hold the same. Attributes that are not declared are
settings: they must be at the end what they were at the beginning.
"""

import importlib
import inspect
import pkgutil
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from plan.catalogue import MERGES, QUERIES, SCHEMA, AsOperator, a, b
from storage.through_bytes import through_bytes

import cedr
import cedr.operators
from cedr import api
from cedr.columnar.chunk import chunk_of
from cedr.columnar.index import RowIndex
from cedr.columnar.promises import NONE, PromiseIndex, Promises, promises_of
from cedr.columnar.state import Stateful
from cedr.operators.finalize.finalize import FinalizeOperator
from cedr.operators.guard import GuardOperator
from cedr.operators.merge.r0 import R0
from cedr.operators.merge.r1 import R1
from cedr.operators.merge.r2 import R2
from cedr.operators.merge.r3_naive import R3Naive
from cedr.operators.sort import SortOperator
from cedr.plan.loop import PROGRESS
from cedr.plan.nodes import Match
from cedr.plan.patterns.tree import EventType, Sequence
from cedr.runtime.spark.shard.upstream import Upstream
from cedr.sources.keys import highest_of_keys
from cedr.sources.progress import ProgressReport, SourceProgress
from cedr.sources.settings import Progress, Times
from cedr.stream import Stream
from cedr.temporal import Adjust, Cti, Insert, Row
from cedr.temporal.element import ExternalCti
from cedr.temporal.punctuation import punctuation
from cedr.temporal.time import INF

# --- streams ---------------------------------------------------------------------------------------------------------


def random_stream(seed, size=60, *, infinite=True, adjusts=True, promises=True):
    """A valid stream in slices: late rows, corrections, CTIs and punctuations."""
    choose = random.Random(seed)
    front = {0: 0, 1: 0}
    live, elements = [], []
    for i in range(size):
        m = choose.randrange(2)
        vs = max(front[m], i // 2 + choose.randrange(-4, 5))
        if adjusts and live and choose.random() < 0.3:
            vs, old, payload = live.pop(choose.randrange(len(live)))
            new = choose.choice([vs, vs + 2, vs + 7])
            if min(old, new) >= front[payload.m] and old != new:
                elements.append(Adjust(vs, old, new, payload))
                if new != vs:
                    live.append((vs, new, payload))
        else:
            payload = Row(m=m, v=choose.choice([None, 0, 1, 2, 3]))
            ve = INF if infinite and choose.random() < 0.2 else vs + choose.randrange(1, 9)
            elements.append(Insert(vs, ve, payload))
            live.append((vs, ve, payload))
        if promises and i % 9 == 8:
            front[m] = max(front[m], i // 2 + 1)
            elements.append(punctuation(front[m], m=m))
        if i % 7 == 6:
            front = {key: max(t, i // 2 - 3) for key, t in front.items()}
            elements.append(Cti(i // 2 - 3))
    return [elements[at : at + 5] for at in range(0, len(elements), 5)]


def in_order(seed, size=60):
    choose = random.Random(seed)
    elements = []
    for t in range(size):
        elements.append(Insert(t, t + choose.randrange(1, 9), Row(m=choose.randrange(2), v=choose.randrange(4))))
        if t % 7 == 6:
            elements.append(Cti(t - 3))
    return [elements[at : at + 5] for at in range(0, len(elements), 5)]


# --- what is looked at -----------------------------------------------------------------------------------------------


def parts_of(value: Any, found: dict[int, Stateful]) -> dict[int, Stateful]:
    """All declared parts below an object, by identity."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            parts_of(item, found)
    elif isinstance(value, Stateful | RowIndex | PromiseIndex):
        found[id(value)] = value
        if isinstance(value, Stateful):
            for name, kind in value.declared.items():
                if kind.saved:
                    parts_of(getattr(value, name), found)
    return found


def settings_of(part: Stateful, owned: dict[int, Stateful]) -> dict[str, Any]:
    return {name: frozen(v, owned, set()) for name, v in vars(part).items() if name not in part.declared}


def frozen(value: Any, owned: dict[int, Stateful], seen: set[int]) -> Any:
    """A value that compares equal as long as nothing in the given one changes; declared parts may."""
    if id(value) in owned or id(value) in seen or isinstance(value, Promises):
        return id(value)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, pl.DataFrame):
        return tuple(value.columns), tuple(value.rows())
    seen.add(id(value))
    if isinstance(value, RowIndex):
        return frozen(value.rows, owned, seen)
    if isinstance(value, dict):
        return [(key, frozen(v, owned, seen)) for key, v in value.items()]
    if isinstance(value, list | tuple):
        return [frozen(v, owned, seen) for v in value]
    if type(value).__module__.startswith("cedr") and hasattr(value, "__dict__"):
        return [(name, frozen(v, owned, seen)) for name, v in vars(value).items()]
    return value if isinstance(value, int | float | str | bytes | None) else id(value)


def plain(saved: Any) -> Any:
    """A snapshot in a form that compares."""
    if isinstance(saved, np.ndarray):
        return saved.tolist()
    if isinstance(saved, pl.DataFrame):
        return saved.rows()
    if isinstance(saved, dict):
        return {key: plain(value) for key, value in saved.items()}
    if isinstance(saved, list | tuple):
        return [plain(value) for value in saved]
    return None if isinstance(saved, Promises) else saved  # sets with equal effect may be stored differently


def check(case: "Case") -> None:
    make, steps, feed, operators = case
    one = make()
    owned = parts_of(operators(one), {})
    first = {key: settings_of(part, owned) for key, part in owned.items() if isinstance(part, Stateful)}
    two = None
    for number, step in enumerate(steps):
        if number in (len(steps) // 3, 2 * len(steps) // 3):
            two = make()
            for old, new in zip(operators(one), operators(two), strict=True):
                new.restore(through_bytes(old.snapshot()))
        out = feed(one, step)
        if two is not None:
            assert feed(two, step) == out
    for old, new in zip(operators(one), operators(two), strict=True):
        assert plain(old.snapshot()) == plain(new.snapshot())
    now = parts_of(operators(one), {})
    for key, part in owned.items():
        if key in now and key in first:
            changed = [n for n, v in settings_of(part, {**owned, **now}).items() if v != first[key].get(n, v)]
            assert not changed, f"{type(part).__name__} does not declare {changed}, which changes while it runs"


def push(operator, step):
    port, elements = step
    return sorted(str(e) for e in operator.process(port, chunk_of(elements, SCHEMA)).elements())


def report(part, step):
    return part.update(*step)


def turns(*streams):
    return [
        (port, slices[i])
        for i in range(max(map(len, streams)))
        for port, slices in enumerate(streams)
        if i < len(slices)
    ]


# --- all operators ---------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    make: Callable[[], Any]
    steps: list[Any]
    feed: Callable[[Any, Any], Any] = push
    operators: Callable[[Any], list[Stateful]] = lambda operator: [operator]


LEVELS = [{"level": "strong"}, {"level": "middle"}, {"block": 3, "flavour": "perfect"}]


def of_query(name, query):
    settings = {"infinite": query.infinite, "adjusts": query.infinite}
    steps = turns(*(random_stream(seed, **settings) for seed in range(query.ports)))
    stream = query.stream().with_consistency(**LEVELS[len(name) % len(LEVELS)])
    return of_stream(stream, steps)


def of_stream(stream, steps):
    return Case(lambda: AsOperator(stream), steps, operators=lambda run: run.engine.operators)


def with_types(source):
    return source.with_columns(s=pl.col("v").cast(pl.String), d=pl.col("v").cast(pl.Decimal(10, 2)))


AGGREGATES = {"s": cedr.max("s"), "d": cedr.sum("d"), "f": cedr.aggregate("v", function=len, dtype=int)}
SHOWN = (("m", pl.col("a.m")),)
ONE = [EventType(k, 0, pl.col("m") == n, var=k.lower()) for n, k in enumerate("AB")]


def edges(source):
    return source.select(start="m", end=pl.col("v").fill_null(0))


LADDER = [("S", "low", "F"), ("F", "low", "F")]
RECURSIVE = {"start": "S", "final": "F", "steps": {"low": pl.col("v") <= 1}, "by": "m", "window": 5}


def versions(source):
    header = {"id": pl.col("v").fill_null(0), "vs": pl.lit(1, pl.Int64), "ve": pl.lit(9, pl.Int64)}
    return Stream(Match((source.with_columns(**header).plan,), Sequence(tuple(ONE), 10), (), SHOWN, bitemporal=True))


def reports(seed):
    choose = random.Random(seed)
    for t in range(12):
        keys = pl.DataFrame({"p": [choose.choice("xyz") for _ in range(3)]})
        starts = np.array([t + choose.randrange(5) for _ in range(3)])
        count = (ExternalCti(3 * t, 3 * t + 3, 2),)
        promises = promises_of([punctuation(t, p="x")], {"p": pl.String})
        yield ProgressReport(
            {"x": t, "y": t // 2}, {"x": t - 1}, count, starts, t, highest_of_keys(keys, starts), promises
        )


def progress():
    source = api.source(
        "s", {"p": str, "v": int}, times=Times(vs="ts", ve="e"), progress=Progress(external_ctis="n", delay=2, by="p")
    )
    return SourceProgress(source.plan, counts=True)


def of_shards(seed):
    choose = random.Random(seed)
    promised = [promises_of([punctuation(t + 3, p="x")], {"p": pl.String}) for t in range(12)]
    return [(shard, t, choose.choice([NONE, promised[t]])) for t in range(12) for shard in range(2)]


def with_counts():
    steps = random_stream(5, promises=False)
    return [(0, [*slice_, ExternalCti(100 + i, 101 + i, 1)]) for i, slice_ in enumerate(steps)]


CASES = {name: of_query(name, query) for name, query in {**QUERIES, **MERGES}.items()} | {
    "types": of_stream(with_types(a()).group_by("m").agg(**AGGREGATES), turns(random_stream(1))),
    "inserts": of_stream(a(insert_only=True).agg(x=cedr.min("v")), turns(random_stream(2, adjusts=False))),
    "one event": of_stream(Stream(Match((a().plan,), ONE[0], (), SHOWN)), turns(random_stream(3))),
    "versions": of_stream(versions(a()), turns(random_stream(4))),
    **{
        f"loop by {progress}": of_stream(cedr.reachability(edges(a()), progress=progress), turns(random_stream(10)))
        for progress in PROGRESS
    },
    "reach": of_stream(
        cedr.reachability(edges(a()), b().select(node="m"), settled=True), turns(random_stream(11), random_stream(12))
    ),
    "recursive": of_stream(
        cedr.automaton(a(), LADDER, plan="recursive", **RECURSIVE), turns(random_stream(13, promises=False))
    ),
    "sort": Case(lambda: SortOperator(SCHEMA, ["m", "v"], [False, True]), turns(random_stream(5))),
    "guard": Case(lambda: GuardOperator(SCHEMA), turns(random_stream(6))),
    "counts": Case(lambda: FinalizeOperator(SCHEMA, remember=5), with_counts()),
    **{
        merge.__name__: Case(lambda merge=merge: merge(SCHEMA), turns(in_order(7), in_order(7)))
        for merge in (R0, R1, R2, R3Naive)
    },
    "progress": Case(progress, [([report],) for report in reports(8)], report),
    "upstream": Case(lambda: Upstream(2), of_shards(9), report),
}


@pytest.mark.parametrize("name", CASES)
def test_all_that_changes_is_declared(name):
    check(CASES[name])


def concrete(kind: type) -> set[type]:
    """All classes below a class that cedr can create."""
    below = kind.__subclasses__()
    own = {c for c in below if c.__module__.startswith("cedr") and not inspect.isabstract(c)}
    return own.union(*map(concrete, below))


def test_every_class_with_state_has_a_case():
    for module in pkgutil.walk_packages([*cedr.operators.__path__], "cedr.operators."):
        importlib.import_module(module.name)
    tested = {type(part) for case in CASES.values() for part in parts_of(case.operators(case.make()), {}).values()}
    assert concrete(Stateful) <= tested
