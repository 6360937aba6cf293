"""Random plans. A plan grows from its sources upward, and the expected table of every node is computed on the way.

So no plan asks for more than the case allows: a node whose answer would be too large is drawn again. A column that two
right programs may compute differently in the last bits (a sum or a mean of arbitrary floats) is *soft*: it may be
put out, but no operator depends on its value.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from random_plans.draw_patterns import match
from random_plans.expected import Frame, evaluate, payload
from random_plans.intervals import TooLargeError
from random_plans.tables import ALWAYS, OPTIONAL, Shape, Table


@dataclass
class Made:
    """A node of the plan: its place, its expected table, and what is known of it."""

    place: int
    frame: Frame
    soft: frozenset[str] = frozenset()
    finite: bool = True
    """No row is endless at any time, also before it is corrected."""
    starts: bool = False
    """No two rows start together."""

    @property
    def firm(self) -> list[str]:
        return [c for c in payload(self.frame) if c not in self.soft]


class RefusedError(Exception):
    """This operator does not go with this input."""


@dataclass
class Drawing:
    """A plan in the making."""

    rng: np.random.Generator
    shape: Shape
    tables: dict[str, Table]
    plan: list[dict[str, Any]] = field(default_factory=list)
    names: int = 0
    latest: dict[int, Made] = field(default_factory=dict)
    spare: dict[int, Made] = field(default_factory=dict)

    def __post_init__(self) -> None:
        total = sum(t.canonical.height for t in self.tables.values())
        self.large = total > 500_000
        self.most_rows = min(3 * total + 20_000, 3_000_000)
        """Rows that a node may yield."""
        self.most_work = min(20 * total + 400_000, 8_000_000)
        """Rows that computing a node may take."""

    # --- chance ------------------------------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def one_of(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def some_of(self, choices: list[str], least: int, most: int) -> list[str]:
        if len(choices) < least:
            raise RefusedError
        n = int(self.rng.integers(least, min(most, len(choices)) + 1))
        return [choices[i] for i in sorted(self.rng.choice(len(choices), n, replace=False))]

    def between(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def length(self, low: float, high: float) -> int:
        """A length of time, in mean gaps between starts of the sources."""
        return max(1, int(self.shape.tick * np.exp(self.rng.uniform(np.log(low), np.log(high)))))

    def fresh(self) -> str:
        self.names += 1
        return f"c{self.names}"

    # --- plans -------------------------------------------------------------------------------------------------

    def add(self, node: dict[str, Any], *inputs: Made, **known: Any) -> Made:
        """The node, if its answer is not too large; `known` is what the inputs do not determine."""
        try:
            frame = evaluate(node, [i.frame for i in inputs], self.canonical(), self.most_work)
        except TooLargeError:
            raise RefusedError from None
        if frame.height > self.most_rows:
            raise RefusedError
        if not frame.height and any(i.frame.height for i in inputs) and self.chance(0.9):
            raise RefusedError  # a plan without an answer tests little
        if inputs:
            node = {"op": node["op"], "of": [i.place for i in inputs], **{k: v for k, v in node.items() if k != "op"}}
        soft = known.get("soft", frozenset().union(*(i.soft for i in inputs)) & set(frame.columns))
        self.plan.append({**node, "soft": sorted(soft)} if soft else node)
        finite = known.get("finite", all(i.finite for i in inputs))
        return Made(len(self.plan) - 1, frame, frozenset(soft), finite, known.get("starts", False))

    def canonical(self) -> dict[str, Frame]:
        return {name: table.canonical for name, table in self.tables.items()}

    def source(self) -> Made:
        name = self.one_of(sorted(self.tables))
        for place, node in enumerate(self.plan):
            if node == {"op": "source", "name": name}:
                return Made(place, self.tables[name].canonical, finite=not self.shape.endless, starts=self.shape.unique)
        return self.add({"op": "source", "name": name}, finite=not self.shape.endless, starts=self.shape.unique)

    def grow(self, depth: int) -> Made:
        """A node with this number of levels below it. Over large tables, inputs of an operator that is then refused
        are given to the next."""
        if depth in self.spare:
            return self.spare.pop(depth)
        self.latest[depth] = self.grown(depth)
        return self.latest[depth]

    def grown(self, depth: int) -> Made:
        if depth == 0:
            return self.source()
        for _ in range(12):
            mark = len(self.plan)
            try:
                return self.one_of(self.menu())(self, depth)
            except RefusedError:
                if not self.large:
                    del self.plan[mark:]
                elif depth - 1 in self.latest:
                    self.spare[depth - 1] = self.latest.pop(depth - 1)
        return self.grow(depth - 1)

    def menu(self) -> list[Callable[["Drawing", int], Made]]:
        return [draw for weight, draw in OPERATORS.values() for _ in range(weight)]

    def small(self, depth: int) -> Made:
        return self.grow(self.between(0, max(depth - 1, 0)))

    def firm_only(self, made: Made) -> Made:
        """Without soft columns."""
        if not made.soft:
            return made
        if not made.firm:
            raise RefusedError
        return self.add({"op": "project", "columns": [[c, ["col", c]] for c in made.firm]}, made)

    # --- what is drawn about columns -----------------------------------------------------------------------------

    def predicate(self, made: Made, depth: int = 1) -> list[Any]:
        if depth and self.chance(0.35):
            kind = self.one_of(["and", "or", "not"])
            parts = [self.predicate(made, depth - 1) for _ in range(1 if kind == "not" else 2)]
            return [kind, *parts]
        column = self.one_of(made.firm or [None])
        if column is None:
            raise RefusedError
        kind = made.frame.schema[column]
        if kind == pl.Boolean:
            return self.one_of([["true", column], ["null", column]])
        if self.chance(0.08):
            return ["null", column]
        values = made.frame[column].drop_nulls()
        if not len(values) or not (kind.is_integer() or kind == pl.Float64 or kind == pl.String):
            return ["not", ["null", column]]
        value = values[self.between(0, len(values) - 1)]
        if kind == pl.String and self.chance(0.3):
            return ["in", column, sorted({values[self.between(0, len(values) - 1)] for _ in range(3)})]
        return [self.one_of(["<", ">=", "<", ">=", "="]), column, value]

    def computed(self, made: Made, column: str) -> list[Any]:
        kind = made.frame.schema[column]
        if kind == pl.Boolean or kind.is_temporal() or kind.is_decimal():
            return ["null", column]
        if kind.is_integer():
            return self.one_of([["mod", column, 5], ["null", column], ["fill", column, 3]])
        if kind == pl.String:
            return self.one_of([["length", column], ["fill", column, "none"]])
        return self.one_of([["half", column], ["null", column], ["fill", column, 0.5]])

    def keys(self, *made: Made, least: int = 1, most: int = 1) -> list[str]:
        """Columns that all have, of one type, and that can be keys; the one with most values comes first."""
        shared = [
            c for c in made[0].firm if all(c in m.firm and m.frame.schema[c] == made[0].frame.schema[c] for m in made)
        ]
        usable = [c for c in shared if not made[0].frame.schema[c].is_float()]
        if "k" in usable and self.chance(0.7):
            others = [c for c in usable if c != "k"]
            return ["k", *self.some_of(others, 0, most - 1)] if others and most > 1 and self.chance(0.3) else ["k"]
        return self.some_of(usable, least, most)


# --- one operator each ---------------------------------------------------------------------------------------------


def where(d: Drawing, depth: int) -> Made:
    made = d.grow(depth - 1)
    return d.add({"op": "where", "p": d.predicate(made)}, made, starts=made.starts)


def project(d: Drawing, depth: int) -> Made:
    made = d.grow(depth - 1)
    kept = d.some_of(payload(made.frame), 1, 6)
    if "k" in made.frame.columns and "k" not in kept and d.chance(0.8):
        kept = ["k", *kept]
    columns: list[list[Any]] = [[c, ["col", c]] for c in kept]
    more = d.between(0, 2) if made.firm else 0
    columns += [[d.fresh(), d.computed(made, d.one_of(made.firm))] for _ in range(more)]
    return d.add({"op": "project", "columns": columns}, made, starts=made.starts)


def sliding(d: Drawing, depth: int) -> Made:
    made = d.grow(depth - 1)
    kind = d.one_of(["sliding", "sliding", "moving"])
    return d.add({"op": kind, "length": d.length(1, 40)}, made, finite=True)


def hopping(d: Drawing, depth: int) -> Made:
    made = d.grow(depth - 1)
    hop = d.length(2, 200)
    size = hop * d.one_of([1, 1, 2, 3])
    return d.add(
        {"op": "hopping", "size": size, "hop": hop, "offset": d.one_of([0, d.between(0, hop)])}, made, finite=True
    )


def endless(d: Drawing, depth: int) -> Made:
    made = d.grow(depth - 1)
    return d.add({"op": d.one_of(["inserts", "deletes"])}, made, finite=False)


def shift(d: Drawing, depth: int) -> Made:
    made = d.grow(depth - 1)
    return d.add({"op": "shift", "by": d.one_of([-1, 1]) * d.length(1, 300)}, made)


def slice_(d: Drawing, depth: int) -> Made:
    made = d.grow(depth - 1)
    start = d.shape.start + d.between(0, d.shape.span // 2)
    return d.add(
        {"op": "slice", "start": start, "end": start + d.between(d.shape.span // 4, d.shape.span)}, made, finite=True
    )


def alter(d: Drawing, depth: int) -> Made:
    made = d.grow(depth - 1)
    if not made.finite:
        raise RefusedError
    return d.add({"op": "alter", "grid": d.one_of([0, d.length(2, 20)]), "times": d.between(2, 3)}, made)


def chop(d: Drawing, depth: int) -> Made:
    made = d.grow(depth - 1)
    if not made.finite:
        raise RefusedError
    period = d.length(4, 400)
    return d.add({"op": "chop", "period": period, "offset": d.between(0, period)}, made)


def session(d: Drawing, depth: int) -> Made:
    made = d.grow(depth - 1)
    if not made.frame.height:
        raise RefusedError
    by = d.keys(made, most=2)
    groups = max(made.frame.select(by).n_unique(), 1)
    gap = d.shape.span * groups / max(made.frame.height, 1)
    timeout = max(1, int(gap * d.rng.uniform(0.1, 1.5)))
    return d.add({"op": "session", "timeout": timeout, "by": by}, made, finite=True)


def clip(d: Drawing, depth: int) -> Made:
    left, right = d.grow(depth - 1), d.small(depth)
    return d.add({"op": "clip", "on": d.keys(left, right, most=2)}, left, right, soft=left.soft, finite=left.finite)


def union(d: Drawing, depth: int) -> Made:
    left, right = d.grow(depth - 1), d.small(depth)
    left, right = alike(d, left, right)
    return d.add({"op": "union"}, left, right)


def alike(d: Drawing, left: Made, right: Made) -> tuple[Made, Made]:
    """Both with the same columns."""
    shared = [
        c for c in payload(left.frame) if c in right.frame.columns and left.frame.schema[c] == right.frame.schema[c]
    ]
    if not shared:
        raise RefusedError

    def narrowed(made: Made) -> Made:
        if payload(made.frame) == shared:
            return made
        return d.add({"op": "project", "columns": [[c, ["col", c]] for c in shared]}, made)

    return narrowed(left), narrowed(right)


def narrow(d: Drawing, made: Made) -> Made:
    """Few columns with few values, so that payloads are often equal."""
    few = [c for c in made.firm if made.frame.schema[c] in (pl.Boolean, pl.String, pl.Int64, pl.UInt8, pl.Date)]
    kept = d.some_of(few, 1, 3)
    return d.add({"op": "project", "columns": [[c, ["col", c]] for c in kept]}, made)


def two_sets(d: Drawing, depth: int) -> Made:
    left = narrow(d, d.grow(depth - 1))
    right = d.firm_only(d.small(depth))
    left, right = alike(d, left, right)
    return d.add({"op": d.one_of(["difference", "intersect"])}, left, right)


def one_set(d: Drawing, depth: int) -> Made:
    made = d.firm_only(d.grow(depth - 1))
    if d.chance(0.7):
        made = narrow(d, made)
    return d.add({"op": d.one_of(["distinct", "coalesce"])}, made)


def join(d: Drawing, depth: int) -> Made:
    left = d.grow(depth - 1)
    right = left if d.chance(0.1) else d.small(depth)
    how = d.one_of(["inner", "inner", "left", "full", "semi", "anti"])
    on = d.keys(left, right, most=2)
    kept = [c for c in payload(right.frame) if c not in on]
    clash = [c for c in kept if c + "_right" in left.frame.columns or c in left.frame.columns]
    if clash and (len(clash) > 3 or d.chance(0.6) or any(c + "_right" in left.frame.columns for c in kept)):
        kept = kept[:2]
        columns = [[c, ["col", c]] for c in on] + [[d.fresh(), ["col", c]] for c in kept]
        soft = {new for (new, (_, c)) in columns if c in right.soft}
        right = d.add({"op": "project", "columns": columns}, right, soft=soft)
    known: dict[str, Any] = {}
    if how in ("semi", "anti"):
        known["soft"] = left.soft
        known["finite"] = left.finite
    else:
        known["soft"] = left.soft | {c + "_right" if c in left.frame.columns else c for c in right.soft if c not in on}
        if how == "inner":
            known["finite"] = left.finite or right.finite
    node = {"op": "join", "on": on, "how": how, "where": None}
    if d.chance(0.3):
        names = {c: c + "_right" if c in left.frame.columns else c for c in right.firm if c not in on}
        pairs = [
            (a, names[c])
            for a in left.firm
            for c in names
            if a not in on and left.frame.schema[a] == right.frame.schema[c]
        ]
        pairs = [p for p in pairs if left.frame.schema[p[0]].is_numeric()]
        if pairs:
            node["where"] = ["columns", *d.one_of(pairs)]
    return d.add(node, left, right, **known)


NUMBERS = (
    "count",
    "sum",
    "sum",
    "avg",
    "avg",
    "stddev",
    "stddev",
    "min",
    "max",
    "first",
    "last",
    "quantile",
    "quantile",
)
ANY_VALUES = ("count", "min", "max", "first", "last")
EXACT_MEANS = ("v", "w", "h", "f")


def is_soft(what: str, column: str, kind: pl.DataType) -> bool:
    exact = column in EXACT_MEANS or kind.is_decimal()
    return what == "stddev" or (what == "avg" and not exact) or (what == "sum" and not exact and not kind.is_integer())


def aggregate(d: Drawing, depth: int) -> Made:
    made = d.grow(depth - 1)
    by = d.one_of([[], d.keys(made, most=2), d.keys(made, most=2), d.keys(made, most=3)])
    found: list[list[Any]] = [[d.fresh(), ["count"]]] if d.chance(0.5) else []
    soft = {c for c in by if c in made.soft}
    for _ in range(d.between(1, 3)):
        column = d.one_of(made.firm or [None])
        if column is None:
            continue
        kind, name = made.frame.schema[column], d.fresh()
        numeric = kind.is_numeric()
        what = [d.one_of(NUMBERS if numeric else ANY_VALUES), column]
        if what[0] == "quantile":
            what.append(d.one_of(["1/2", "1/4", "9/10", "7/100", "1/1"]))
        if is_soft(what[0], column, kind):
            soft.add(name)
        found.append([name, what])
    if made.frame.height < 20_000 and "v" in made.firm and d.chance(0.05):
        found.append([d.fresh(), ["range", "v"]])
    if not found:
        raise RefusedError
    return d.add({"op": "aggregate", "by": by, "aggregates": found}, made, soft=soft)


def top_k(d: Drawing, depth: int) -> Made:
    made = d.firm_only(d.grow(depth - 1))
    by = d.one_of([[], d.keys(made, most=2), d.keys(made, most=2)])
    order = d.some_of(made.firm, 1, 2)
    down = [d.chance(0.6) for _ in order]
    rank = d.fresh() if d.chance(0.4) else None
    return d.add(
        {"op": "top_k", "k": d.between(1, 5), "order": order, "descending": down, "by": by, "rank": rank}, made
    )


def same(d: Drawing, depth: int) -> Made:
    """The same table, merged with a copy or sorted."""
    made = d.grow(depth - 1)
    if made.soft:
        raise RefusedError
    if d.chance(0.5):
        return d.add({"op": "sort", "by": d.some_of(made.firm, 1, 2)}, made)
    copy = d.add({"op": "project", "columns": [[c, ["col", c]] for c in payload(made.frame)]}, made)
    return d.add({"op": "merge"}, made, copy)


def countdown(d: Drawing, depth: int) -> Made:
    """A loop: each row, and the rows with one less, down to 0."""
    made = d.firm_only(d.grow(depth - 1))
    if "v" not in made.frame.columns or made.frame.height > 100_000:
        raise RefusedError
    kept = [c for c in made.firm if c == "v" or d.chance(0.3)]
    made = d.add({"op": "project", "columns": [[c, ["col", c]] for c in kept]}, made)
    return d.add({"op": "countdown", "column": "v"}, made)


def regex(d: Drawing, depth: int) -> Made:
    """Stretches of events of a key, which must not start together."""
    made = d.grow(min(depth - 1, 1))
    if not made.starts or "k" not in made.frame.columns or not made.frame.height:
        raise RefusedError
    gap = d.shape.span * made.frame["k"].n_unique() / made.frame.height
    window = max(1, int(gap * d.rng.uniform(0.5, 8)))
    steps = [d.predicate(made), d.predicate(made)]
    return d.add({"op": "regex", "by": "k", "steps": steps, "window": window}, made, soft=frozenset(), finite=True)


OPERATORS: dict[str, tuple[int, Callable[[Drawing, int], Made]]] = {
    "where": (2, where),
    "project": (2, project),
    "sliding": (3, sliding),
    "hopping": (3, hopping),
    "endless": (2, endless),
    "shift": (1, shift),
    "slice": (1, slice_),
    "alter": (1, alter),
    "chop": (1, chop),
    "session": (3, session),
    "clip": (3, clip),
    "union": (2, union),
    "two_sets": (4, two_sets),
    "one_set": (3, one_set),
    "join": (6, join),
    "aggregate": (8, aggregate),
    "top_k": (3, top_k),
    "same": (1, same),
    "countdown": (1, countdown),
    "regex": (3, regex),
    "match": (12, match),
}


def draw_shape(rng: np.random.Generator, rows: int) -> Shape:
    def one_of(choices: Any) -> Any:
        return choices[int(rng.integers(len(choices)))]

    many = bool(rng.random() < 0.7)
    keys = max(rows // int(rng.integers(8, 40)), 4) if many else int(rng.integers(3, 60))
    progress = one_of(["delay", "delay", "delay", "cti", "cti", "none", "ordered"])
    extra = [OPTIONAL[i] for i in sorted(rng.choice(len(OPTIONAL), int(rng.integers(1, 4)), replace=False))]
    return Shape(
        rows=rows,
        time=one_of(["int", "int", "us", "zoned"]),
        tick=one_of([2, 10, 1000]),
        keys=keys,
        live=float(rng.uniform(0.3, 2.0)) * (keys if rng.random() < 0.6 else 8),
        columns=(*ALWAYS, *extra),
        corrections=bool(rng.random() < 0.8) and progress != "ordered",
        endless=bool(rng.random() < 0.25),
        instants=bool(rng.random() < 0.15),
        unique=bool(rng.random() < 0.5),
        progress=progress,
        nulls=bool(rng.random() < 0.8),
    )
