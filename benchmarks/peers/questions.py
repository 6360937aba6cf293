"""The questions of `./cedr bench peers`, by name: a workload, its input, and the form in which answers are compared.

The five workloads of `./cedr bench spark`, over events whose times are whole milliseconds: Flink's clock has no finer
ones. The sliding sum is asked for at each event only. cedr and Spark's side emit it whenever it changes, also when an
event goes out; these further rows are work they do, and are left out of the comparison.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl
from nexmark import generator
from nexmark.questions import ABOUT, workload

from peers import data
from peers.answers import disagreement
from peers.data import Shape
from peers.join import JOIN
from peers.parameters import APART, HOP, SCOPE, WINDOW
from peers.parameters import SLIDING as LENGTH
from peers.pattern import PATTERN
from peers.sliding import SLIDING
from peers.windows import HOPPING, TUMBLING
from peers.workload import Workload

Tables = Mapping[str, pl.DataFrame]
Write = Callable[[Path, tuple[str, ...], Shape], None]


def as_it_is(answer: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    return answer


def at_events(answer: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """The rows that begin when an event does; events at the same time give one row."""
    starts = tables["events"].select("k", vs="ts").unique()
    return answer.select("vs", "k", "s").unique().join(starts, on=["k", "vs"], how="semi")


@dataclass(frozen=True)
class Question:
    name: str
    about: str
    workload: Workload
    write: Write = data.write
    """Makes the input in a folder."""
    compared: Callable[[pl.DataFrame, Tables], pl.DataFrame] = as_it_is

    def wrong(self, who: str, answer: pl.DataFrame, expected: pl.DataFrame, tables: Tables) -> str | None:
        """How the answer differs from the expected one, as text."""
        found, expected = (self.compared(table, tables) for table in (with_times(answer, expected), expected))
        exact = tuple(column for column in self.workload.exact if column in expected.columns)
        return disagreement(who, found, expected, exact, self.workload.key)


def with_times(answer: pl.DataFrame, expected: pl.DataFrame) -> pl.DataFrame:
    """Times of programs that write them as microseconds since 1970 become timestamps."""
    times = [c for c, kind in expected.schema.items() if kind.is_temporal() and c in answer.columns]
    return answer.with_columns(pl.col(times).cast(pl.Datetime("us", "UTC")))


def nexmark(name: str, corrected: bool = False) -> Question:
    write = partial(generator.write, corrected=corrected)
    return Question(f"{name}-corrected" if corrected else name, ABOUT[name][0], workload(name, corrected), write)


CORRECTED = "Nexmark with corrected bids"
"""A question to those who can take a row back; the others are asked the plain one only."""
GROUPS = {
    "Workloads": (
        Question("hopping", f"count, sum, average, maximum per key in windows of {WINDOW} s every {HOP} s", HOPPING),
        Question("tumbling", f"the same in windows of {WINDOW} s", TUMBLING),
        Question("join", f"events of two streams with equal keys, less than {APART} ms apart", JOIN),
        Question("pattern", f"low, then middle, without high between, within {SCOPE} s, all pairs", PATTERN),
        Question("sliding", f"sum per key over the last {LENGTH} s, at each event", SLIDING, compared=at_events),
    ),
    "Nexmark": tuple(nexmark(name) for name in ABOUT),
    CORRECTED: tuple(nexmark(name, corrected=True) for name, about in ABOUT.items() if "bid" in about[1]),
}
"""What has a table and a plot of its own."""

QUESTIONS = {question.name: question for questions in GROUPS.values() for question in questions}
