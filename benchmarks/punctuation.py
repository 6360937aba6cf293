"""Punctuation on one core: state and speed of operators over events that never end, with and without it.

1 M events from a seed, in 40 chunks with a CTI after each. Keys come and go, about 20 events each within a chunk
or two, and every event is endless. A CTI ends nothing here, so without more the state grows with the stream. With
punctuation each chunk also declares which keys have ended, and the state is that of the other keys. Both must give the
same answer. Then a million punctuations about keys by themselves: the cost to add, to look up and to store them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl
from harness import BenchmarkReport, alternate, median, one_core, spread

import cedr
from cedr.columnar.chunk import Chunk, assemble
from cedr.columnar.promises import NONE, PromiseIndex, point_promises
from cedr.columnar.tally import Tally
from cedr.columnar.times import Times
from cedr.temporal.time import INF

CHUNKS = 40
PER_KEY = 20
ITEMS = 12
"""The number of different items, so that a key has copies."""
FLAT_BAR = 1.2
SPEED_BAR = 0.7
ASKED = 50_000
KEYS_PER_CHUNK = 10_000

Feed = list[tuple[str, Chunk]]


@dataclass(frozen=True)
class Workload:
    """A query over one or two streams."""

    query: Callable[..., cedr.Stream]
    sources: tuple[str, ...] = ("left",)


WORKLOADS = {
    "distinct": Workload(lambda s: s.distinct()),
    "difference": Workload(lambda s, t: s.difference(t), ("left", "right")),
    "join": Workload(lambda s, t: s.join(t.distinct(), on=["key", "item"]), ("left", "right")),
    "group-by": Workload(lambda s: s.group_by("key").agg(n=cedr.count(), top=cedr.max("item"))),
}


def run(report: BenchmarkReport, quick: bool = False) -> None:
    one_core()
    n = 100_000 if quick else 1_000_000
    for name, workload in WORKLOADS.items():
        for text_keys in (False, True):
            compare(report, f"{name}, text keys" if text_keys else name, workload, text_keys, n, quick)
    for title, keys in tables_of_keys(n).items():
        many(report, title, keys)


# --- operators -------------------------------------------------------------------------------------------------------


def compare(report: BenchmarkReport, title: str, workload: Workload, text_keys: bool, n: int, quick: bool) -> None:
    kind = pl.String if text_keys else pl.Int64
    sources = [
        cedr.source(s, {"key": kind, "item": pl.Int64}, progress=cedr.Progress(promises="key"))
        for s in workload.sources
    ]
    query = workload.query(*sources).with_latency("ordered")
    fed = feed(n, workload.sources, text_keys)
    silent = [(name, replace(chunk, promises=NONE)) for name, chunk in fed]
    state, without = states(query, fed), states(query, silent)
    for who, rows in (("with", state), ("without", without)):
        shares = [rows[len(rows) * share // 4 - 1] for share in (1, 2, 3, 4)]
        note = "at 25, 50, 75, 100 %: " + ", ".join(f"{r:,}" for r in shares)
        report.add(f"{title}: most state {who} punctuation", max(rows), "rows", note=note)
    note = f"without punctuation {growth(without):.1f} x"
    report.add(
        f"{title}: most state, last quarter over first", growth(state), "x", bar=FLAT_BAR, at_most=True, note=note
    )
    seconds = alternate(
        {"with": partial(push_all, query, fed), "without": partial(push_all, query, silent)}, 1 if quick else 3
    )
    speeds = {who: [n / s / 1e6 for s in taken] for who, taken in seconds.items()}
    for who in ("with", "without"):
        report.add(f"{title}, {who} punctuation", median(speeds[who]), "M events/s", spread=spread(speeds[who]))
    ratio = median(speeds["with"]) / median(speeds["without"])
    report.add(f"{title}: speed with over without", ratio, "x", bar=None if quick else SPEED_BAR)
    same = answer(query, fed).equals(answer(query, silent))
    report.add(f"{title}: answers agree", float(same), "of 1", bar=1)


def growth(state: list[int]) -> float:
    quarter = len(state) // 4
    return max(state[-quarter:]) / max(state[:quarter])


def feed(n: int, sources: tuple[str, ...], text_keys: bool, seed: int = 7) -> Feed:
    """The streams chunk by chunk, in turn. Keys are numbered in the order in which they come."""
    rng, size = np.random.default_rng(seed), n // CHUNKS
    place = np.arange(n)
    keys = np.maximum(place + rng.integers(-size // 4, size // 4, n), 0) // PER_KEY
    payload = pl.DataFrame({"key": as_keys(keys, text_keys), "item": rng.integers(0, ITEMS, n)})
    left = np.minimum.accumulate(keys[::-1])[::-1]  # the first key that is still to come from here on
    result: Feed = []
    for a in range(0, n, size):
        b = a + size
        over = as_keys(np.arange(left[a], left[b] if b < n else keys.max() + 1), text_keys)
        promises = point_promises(pl.DataFrame({"key": over}), np.full(len(over), INF))
        ports = rng.integers(0, len(sources), b - a)
        for port, name in enumerate(sources):
            mine = ports == port
            vs = place[a:b][mine]
            chunk = assemble(vs, vs, np.full(len(vs), INF), payload[a:b].filter(pl.Series(mine)), INF if b == n else b)
            result.append((name, replace(chunk, promises=promises)))
    return result


def as_keys(keys: Times, text_keys: bool) -> pl.Series:
    numbers = pl.Series("key", keys, dtype=pl.Int64)
    return "key-" + numbers.cast(pl.String) if text_keys else numbers


def push_all(query: cedr.Stream, fed: Feed) -> None:
    engine = query.engine()
    for name, chunk in fed:
        engine.push(name, chunk)


def states(query: cedr.Stream, fed: Feed) -> list[int]:
    """The rows of state after each chunk but the last ones, which end the stream and with it all state."""
    engine, found = query.engine(), []
    for name, chunk in fed:
        if chunk.cti == INF:
            break
        engine.push(name, chunk)
        found.append(sum(op.metrics.state_rows for op in engine.operators))
    return found


def answer(query: cedr.Stream, fed: Feed) -> pl.DataFrame:
    """What holds in the end."""
    engine = query.engine()
    tally = Tally(engine.schema)
    for name, chunk in fed:
        tally.add(engine.push(name, chunk))
    return tally.table().sort(pl.all())


# --- punctuations alone ----------------------------------------------------------------------------------------------


def tables_of_keys(n: int, seed: int = 7) -> dict[str, pl.DataFrame]:
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(n)
    return {
        "numbers in order": pl.DataFrame({"key": np.arange(n)}),
        "numbers in any order": pl.DataFrame({"key": shuffled}),
        "numbers far apart": pl.DataFrame({"key": shuffled * 1_000}),
        "texts": pl.DataFrame({"key": as_keys(shuffled, text_keys=True)}),
        "pairs": pl.DataFrame({"key": shuffled // 24, "hour": shuffled % 24}),
    }


def many(report: BenchmarkReport, title: str, keys: pl.DataFrame) -> None:
    """Add promises about all keys, some at a time, then look them up."""
    known, start = PromiseIndex(), time.perf_counter()
    for a in range(0, keys.height, KEYS_PER_CHUNK):
        part = keys[a : a + KEYS_PER_CHUNK]
        known.add(point_promises(part, np.full(part.height, INF)))
    learned = time.perf_counter() - start
    asked = keys.sample(ASKED, seed=7)
    start = time.perf_counter()
    assert (known.of(asked) == INF).all()
    found = time.perf_counter() - start
    what = f"{keys.height:,} punctuations about {title}"
    report.add(f"{what}: to learn", learned / keys.height * 1e9, "ns each")
    report.add(f"{what}: to keep", known.nbytes / keys.height, "bytes each", note=f"{len(known):,} entries")
    report.add(f"{what}: to look up", found / ASKED * 1e9, "ns a row", note=f"{ASKED:,} rows at once")
