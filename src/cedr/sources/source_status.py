"""How far a source has come and who holds it back, in few words: small enough to be written with every micro-batch.

Of the partitions of a source, or of the values of `per`, only the slowest and the furthest are named. One is *ahead*
when it is much further than the others are apart from each other, as a clock that is wrong makes it.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cedr.columnar.promises import BEFORE
from cedr.columnar.times import Times
from cedr.sources.keys import AT, HIGHEST
from cedr.sources.progress import SILENT, Progress
from cedr.storage.plain import allowed
from cedr.temporal.time import INF, MIN

FEW = 3
"""So many of each kind are named."""
APART = 10
"""So many times the distance between the quarters of the others is much further."""
ENOUGH = 4
"""Fewer are no measure for one of them."""


@allowed
class Member(NamedTuple):
    """A partition, or a value of `per`: settled up to a time, its highest start, and when it was heard of last."""

    name: str
    settled: int
    highest: int
    at: int


@allowed
@dataclass(frozen=True)
class SourceStatus:
    """`members` is how many there are; without partitions and `per` it is one, without a name."""

    source: str
    cti: int
    now: int
    members: int
    slowest: tuple[Member, ...]
    ahead: tuple[Member, ...]
    usual: int
    """The highest start of the one in the middle."""


def source_status(progress: Progress) -> SourceStatus:
    slowest, furthest = members(progress.heard(FEW)), members(progress.heard(FEW, furthest=True))
    highest = progress.highest()
    lower, usual, upper = quarters(highest)
    limit = upper + APART * max(upper - lower, progress.delay or 0, 1)
    ahead = [m for m in furthest if m.highest > limit] if len(highest) >= ENOUGH else []
    return SourceStatus(progress.source.name, progress.cti, progress.now, len(highest), slowest, tuple(ahead), usual)


def members(heard: pl.DataFrame) -> tuple[Member, ...]:
    names = [name for name in heard.columns if name not in (BEFORE, HIGHEST, AT, SILENT)]
    rows = heard.iter_rows(named=True)
    return tuple(Member(named({n: row[n] for n in names}), row[BEFORE], row[HIGHEST], row[AT]) for row in rows)


def named(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)


def quarters(highest: Times) -> tuple[int, int, int]:
    """A quarter, half and three quarters of them lie below; as whole numbers, which doubles would round."""
    finite = highest[(highest != MIN) & (highest != INF)]
    if not len(finite):
        return MIN, MIN, MIN
    places = [len(finite) // 4, len(finite) // 2, 3 * len(finite) // 4]
    found = np.partition(finite, places)
    lower, usual, upper = (int(found[place]) for place in places)
    return lower, usual, upper
