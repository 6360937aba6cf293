"""The progress of a source and what holds it back, small enough to be written with every micro-batch.

Of the partitions of a source, or of the values of `progress_by`, only the slowest and the furthest are listed. One is
*ahead* when it is far beyond the spread of the others, as with a wrong clock.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cedr.columnar.promises import BEFORE
from cedr.columnar.times import Times
from cedr.sources.keys import AT, HIGHEST
from cedr.sources.progress import SILENT, SourceProgress
from cedr.storage.plain import allowed
from cedr.temporal.time import INF, MIN

FEW = 3
"""Number of members of each kind that are listed."""
APART = 10
"""A member is ahead if its distance is this many times the interquartile range of the others."""
ENOUGH = 4
"""Minimum number of members for this comparison."""


@allowed
class PartitionStatus(NamedTuple):
    """A partition, or a value of `progress_by`: progress, highest start, and when it last reported."""

    name: str
    promised: int
    highest: int
    at: int


@allowed
@dataclass(frozen=True)
class SourceStatus:
    """`members` is their number; without partitions and `progress_by` it is 1, without a name."""

    source: str
    cti: int
    now: int
    members: int
    slowest: tuple[PartitionStatus, ...]
    ahead: tuple[PartitionStatus, ...]
    usual: int
    """The median of the highest starts."""


def source_status(progress: SourceProgress) -> SourceStatus:
    slowest, furthest = members(progress.table(FEW)), members(progress.table(FEW, furthest=True))
    highest = progress.highest()
    lower, usual, upper = quarters(highest)
    limit = upper + APART * max(upper - lower, progress.delay or 0, 1)
    ahead = [m for m in furthest if m.highest > limit] if len(highest) >= ENOUGH else []
    return SourceStatus(progress.source.name, progress.cti, progress.now, len(highest), slowest, tuple(ahead), usual)


def members(progress: pl.DataFrame) -> tuple[PartitionStatus, ...]:
    names = [name for name in progress.columns if name not in (BEFORE, HIGHEST, AT, SILENT)]
    rows = progress.iter_rows(named=True)
    return tuple(PartitionStatus(named({n: row[n] for n in names}), row[BEFORE], row[HIGHEST], row[AT]) for row in rows)


def named(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)


def quarters(highest: Times) -> tuple[int, int, int]:
    """The quartiles, as whole numbers, which floats would round."""
    finite = highest[(highest != MIN) & (highest != INF)]
    if not len(finite):
        return MIN, MIN, MIN
    places = [len(finite) // 4, len(finite) // 2, 3 * len(finite) // 4]
    found = np.partition(finite, places)
    lower, usual, upper = (int(found[place]) for place in places)
    return lower, usual, upper
