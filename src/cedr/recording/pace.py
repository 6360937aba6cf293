"""The rows of a changelog again, at the pace they were emitted: what a program that follows the query would have seen.

Rows come in moments: all that was emitted at one time of day, or where only lifetimes are known, with one sync time.
"""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from cedr.columnar.chunk import NEW, OLD, VS, Chunk
from cedr.recording.changelog import Recorded
from cedr.sinks.readable import renamed
from cedr.sources.user_times import as_user_times
from cedr.storage.folder import Folder
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, MIN

By = Literal["emitted", "vs"]
CTI = "_cti"
SECOND = 1_000_000


@dataclass(frozen=True)
class Moment:
    """`at` is in microseconds; `rows` and the CTI that holds after them are as a source reads them."""

    at: int
    rows: pl.DataFrame


def moments(recorded: Recorded, by: By) -> Iterator[Moment]:
    """What was emitted, moment by moment."""
    times = pace_times(recorded, by)
    cuts = [0, *(np.flatnonzero(times[1:] != times[:-1]) + 1).tolist(), len(times)] if len(times) else [0, 0]
    frame = as_source(recorded)
    ctis = list(recorded.ctis)
    for start, end in pairwise(cuts):
        rows, last = frame[start:end], end == len(times)
        while ctis and (ctis[0][0] <= end or last):
            rows = pl.concat([rows, cti_row(frame, ctis.pop(0)[1])])
        yield Moment(int(times[start]) if len(times) else 0, shown(rows, recorded))


def pace_times(recorded: Recorded, by: By) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """They never decrease, even if the clock was set back."""
    if by == "vs":
        syncs = Chunk(recorded.rows).sync
        return np.maximum.accumulate(syncs) if len(syncs) else syncs
    if recorded.emitted_at is None:
        raise QueryError(
            f"{recorded.place} has no column 'emitted', so the pace is unknown; use --by vs or --speed max"
        )
    return np.maximum.accumulate(recorded.emitted_at) if len(recorded.emitted_at) else recorded.emitted_at


def as_source(recorded: Recorded) -> pl.DataFrame:
    """Rows that `cedr.source(vs=, ve=, ve_new=, cti=)` reads: the new end only where there is one."""
    is_insert = pl.col(OLD) == pl.col(VS)
    if isinstance(recorded.time_type, pl.Datetime) and recorded.rows.filter(~is_insert & (pl.col(NEW) == INF)).height:
        raise QueryError(
            f"{recorded.place}: a change removes the end of a lifetime, which a table of timestamps cannot express"
        )
    return recorded.rows.select(
        VS,
        pl.when(is_insert).then(pl.col(NEW)).otherwise(pl.col(OLD)).alias(OLD),
        pl.when(~is_insert).then(pl.col(NEW)).alias(NEW),
        pl.lit(None, pl.Int64).alias(CTI),
        *recorded.schema,
    )


def cti_row(frame: pl.DataFrame, cti: int) -> pl.DataFrame:
    return pl.DataFrame({CTI: [cti]}).select(
        *(pl.col(name) if name == CTI else pl.lit(None, kind).alias(name) for name, kind in frame.schema.items())
    )


def shown(rows: pl.DataFrame, recorded: Recorded) -> pl.DataFrame:
    """Times as the user has them. In whole numbers, a new end that never comes is the greatest of them."""
    kept = rows.filter(pl.col(CTI).is_null() | ~pl.col(CTI).is_in([INF, MIN]))
    if not isinstance(recorded.time_type, pl.Datetime):
        timed = kept.with_columns(pl.when(pl.col(OLD) != INF).then(pl.col(OLD)).alias(OLD))
    else:
        timed = as_user_times(kept, (VS, OLD, NEW, CTI), recorded.time_type)
    return renamed(timed, {VS: "vs", OLD: "ve", NEW: "ve_new", CTI: "cti"}, recorded.schema)


def paced(
    found: Iterator[Moment], speed: float, clock: Callable[[], float], sleep: Callable[[float], None]
) -> Iterator[Moment]:
    """Each moment when it is due: `speed` times as fast as it was; infinite is at once."""
    began, first = clock(), None
    for moment in found:
        first = moment.at if first is None else first
        due = began + (moment.at - first) / SECOND / speed
        if (wait := due - clock()) > 0:
            sleep(wait)
        yield moment


def write_moment(moment: Moment, folder: Path, number: int, suffix: str) -> None:
    """A file that appears only when it is complete, as file sources require."""
    content = io.BytesIO()
    if suffix == "csv":
        moment.rows.write_csv(content)
    else:
        moment.rows.write_parquet(content)
    Folder(str(folder)).write_plain(f"{number:08}.{suffix}", content.getvalue(), sync="none")
