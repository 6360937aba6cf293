"""Patterns on one core, compared with hand-written matchers that process event by event.

1 M events from a seed, 1,000 machines, 1,000 events a second of stream time, so one a second of each machine, their
types at random; 20 % are late by up to 5 s. Chunks of 50,000 with a CTI after each, middle consistency, perfect
latency. The matcher by hand is a Python loop that gets all events in the order of time, with nothing late and nothing
to repair; it must find the same matches. Growth: the same query over ten times the events. Sharing: a pattern in which
a costly sequence occurs twice, next to one in which it occurs once, and one in which the second scope is a chronon
shorter, so that the two have to be computed each by itself.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from harness import BenchmarkReport, alternate, median, one_core, spread

import cedr
from cedr.columnar.chunk import VS, Chunk, assemble
from cedr.columnar.tally import VE, Tally
from cedr.temporal.time import INF

sys.path.insert(0, str(Path(__file__).parent))

from by_hand import matchers
from by_hand.matchers import Event, Match

SECOND = 1_000_000
RATE = 1_000
MACHINES = 1_000
CHUNK = 50_000
PIECE = 500_000
LATENESS = 5 * SECOND
SHARE_LATE = 0.2
GROWTH_BAR = 1.3
COLUMNS = [VS, VE, "machine", "first", "second"]


@dataclass(frozen=True)
class Pattern:
    """A query, the types of its events, the same by hand, and how many million events a second it has to reach."""

    when: str
    types: tuple[str, str, str]
    by_hand: Callable[[Iterable[Event]], list[Match]]
    bar: float

    @property
    def text(self) -> str:
        return f"""
            EVENT Found
            WHEN {self.when}
            WHERE CorrelationKey(machine, EQUAL)
            OUTPUT x.machine AS machine, x.value AS first, y.value AS second
        """

    def query(self, text_keys: bool) -> cedr.Stream:
        schema = {"machine": pl.String if text_keys else pl.Int64, "kind": pl.String, "value": pl.Float64}
        return cedr.query(self.text, cedr.source("events", schema, vs="ts", types="kind")).with_latency("perfect")


LETTERS = ("A", "B", "C")
PATTERNS = {
    "SEQUENCE": Pattern("SEQUENCE(A x, B y, 10 seconds)", LETTERS, matchers.sequence, 2),
    "NOT": Pattern("NOT(C z, SEQUENCE(A x, B y, 10 seconds))", LETTERS, matchers.without_between, 1.5),
    "UNLESS": Pattern(
        "UNLESS(SEQUENCE(INSTALL x, SHUTDOWN y, 12 seconds), RESTART z, 5 seconds)",
        ("INSTALL", "SHUTDOWN", "RESTART"),
        matchers.not_restarted,
        1,
    ),
    "FIRST CONSUME": Pattern("SEQUENCE(A x FIRST CONSUME, B y, 10 seconds)", LETTERS, matchers.each_once, 1),
}


def chunks(n: int, types: tuple[str, str, str], text_keys: bool = False, seed: int = 7) -> Iterator[Chunk]:
    """The stream, made piece by piece, so that a long stream needs no more memory than a short one."""
    names = pl.Series("machine", [f"machine-{i:04}" for i in range(MACHINES)])
    begin = 0
    for part in range(0, n, PIECE):
        size = min(PIECE, n - part)
        rng = np.random.default_rng(seed + part)
        start = begin + np.cumsum(rng.integers(1, 2 * SECOND // RATE, size))
        begin = int(start[-1])
        late = np.where(rng.random(size) < SHARE_LATE, rng.integers(0, LATENESS, size), 0)
        vs = start[np.argsort(start + late, kind="stable")]
        numbers = pl.Series("machine", rng.integers(0, MACHINES, size))
        machines = names.gather(numbers) if text_keys else numbers
        kinds = pl.Series("kind", types).gather(rng.integers(0, len(types), size))
        payload = pl.DataFrame([machines, kinds, pl.Series("value", rng.random(size))])
        after = np.append(np.minimum.accumulate(vs[::-1])[::-1], INF if part + size == n else begin + 1)
        for a in range(0, size, CHUNK):
            b = min(a + CHUNK, size)
            yield assemble(vs[a:b], vs[a:b], vs[a:b] + 1, payload[a:b], int(after[b]))


def run(report: BenchmarkReport, quick: bool = False) -> None:
    one_core()
    n = 100_000 if quick else 1_000_000
    for name, pattern in PATTERNS.items():
        report.print(f"{name}: {pattern.when}")
        for text_keys in (False, True):
            compare(report, name, pattern, text_keys, n, quick)
    for name, pattern in PATTERNS.items():
        growth(report, name, pattern, n, quick)
    sharing(report, n, quick)


def compare(report: BenchmarkReport, name: str, pattern: Pattern, text_keys: bool, n: int, quick: bool) -> None:
    query, feed = pattern.query(text_keys), list(chunks(n, pattern.types, text_keys))
    data = pl.concat([c.rows.select(VS, "machine", "kind", "value") for c in feed]).sort(VS)
    title = f"{name}, text keys" if text_keys else name
    found = answer(query, feed)
    wrong = disagreement(found, by_hand(pattern, data))
    contestants: dict[str, Callable[[], object]] = {
        "cedr": partial(push_all, query, feed),
        "by hand": partial(by_hand, pattern, data),
    }
    seconds = alternate(contestants, 2 if quick else 5)
    speeds = {who: [n / s / 1e6 for s in taken] for who, taken in seconds.items()}
    bar = None if quick or text_keys else pattern.bar
    note = f"{found.height / n:.2f} matches per event"
    report.add(title, median(speeds["cedr"]), "M events/s", bar=bar, spread=spread(speeds["cedr"]), note=note)
    report.add(f"{title}, by hand", median(speeds["by hand"]), "M events/s", spread=spread(speeds["by hand"]))
    report.add(f"{title}: cedr over by hand", median(speeds["cedr"]) / median(speeds["by hand"]), "x")
    report.add(f"{title}: answers agree", float(wrong is None), "of 1", bar=1, note=wrong or "")


def push_all(query: cedr.Stream, feed: Iterable[Chunk]) -> None:
    engine = query.engine()
    for chunk in feed:
        engine.push("events", chunk)


def answer(query: cedr.Stream, feed: Iterable[Chunk]) -> pl.DataFrame:
    """What holds in the end."""
    engine = query.engine()
    tally = Tally(engine.schema)
    for chunk in feed:
        tally.add(engine.push("events", chunk))
    return tally.table().select(COLUMNS)


def by_hand(pattern: Pattern, data: pl.DataFrame) -> list[Match]:
    """Taking rows out of a table belongs to the work, as cedr gets tables too."""
    return pattern.by_hand(data.iter_rows())


def disagreement(found: pl.DataFrame, expected: list[Match]) -> str | None:
    """As text; None if both found the same matches."""
    wanted = pl.DataFrame(expected, schema=found.schema, orient="row").sort(COLUMNS)
    if found.height != wanted.height:
        return f"{found.height:,} matches instead of {wanted.height:,}"
    return None if found.sort(COLUMNS).equals(wanted) else "as many matches, but others"


def growth(report: BenchmarkReport, name: str, pattern: Pattern, n: int, quick: bool) -> None:
    """Time per event in a stream ten times as long; the events are made between the pushes, which are what counts."""
    query = pattern.query(text_keys=False)
    short = median([per_event(query, chunks(n, pattern.types), n)[0] for _ in range(5)])
    long, state = per_event(query, chunks(10 * n, pattern.types), 10 * n)
    note = f"{long:,.0f} instead of {short:,.0f} ns, {state:,} state rows"
    bar = None if quick else GROWTH_BAR
    report.add(f"{name}: time per event, 10x the events", long / short, "x", bar=bar, at_most=True, note=note)


def per_event(query: cedr.Stream, feed: Iterable[Chunk], n: int) -> tuple[float, int]:
    """Nanoseconds per event, and the most state rows."""
    engine, busy, state = query.engine(), 0.0, 0
    for chunk in feed:
        start = time.perf_counter()
        engine.push("events", chunk)
        busy += time.perf_counter() - start
        state = max(state, sum(op.metrics.state_rows for op in engine.operators))
    return busy / n * 1e9, state


def sharing(report: BenchmarkReport, n: int, quick: bool) -> None:
    """The cost of a sequence that occurs in a pattern a second time."""
    feed = list(chunks(n, LETTERS))
    kept = "UNLESS(SEQUENCE(A x, B y, C z, 20 seconds), {}, 10 seconds)"
    texts = {
        "once": kept.format("C c"),
        "twice": kept.format("SEQUENCE(A u, B v, C w, 20 seconds)"),
        "twice, not alike": kept.format("SEQUENCE(A u, B v, C w, 19999999)"),
    }
    queries = {
        name: Pattern(when, LETTERS, matchers.sequence, 0).query(text_keys=False) for name, when in texts.items()
    }
    seconds = alternate({name: partial(push_all, query, feed) for name, query in queries.items()}, 2 if quick else 5)
    for name, when in texts.items():
        speeds = [n / s / 1e6 for s in seconds[name]]
        report.add(f"SEQUENCE {name}", median(speeds), "M events/s", spread=spread(speeds), note=when)
    for name in ("twice", "twice, not alike"):
        report.add(f"SEQUENCE {name}: time over once", median(seconds[name]) / median(seconds["once"]), "x")
