"""The canonical and the tritemporal table of a changelog, as known at a CEDR time.

CEDR time is the position in the order in which changes were emitted, from 1 on; where the time of day was recorded,
that may be given instead.
"""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from cedr.columnar.chunk import NEW, OLD, VS, Chunk
from cedr.columnar.tally import VE, Tally
from cedr.recording.changelog import Recorded
from cedr.sinks.readable import renamed, table_of
from cedr.sources.user_times import TimeType, as_user_times
from cedr.temporal.errors import QueryError, TimeError
from cedr.temporal.time import INF
from cedr.temporal.tritemporal import HistoryTable

CS, CE, K = "_cs", "_ce", "_k"
BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


def known_at(recorded: Recorded, at: str | None) -> Recorded:
    """What had been emitted at this CEDR time: a number of changes, or a time of day."""
    if at is None:
        return recorded
    number = changes_until(recorded, at)
    emitted_at = None if recorded.emitted_at is None else recorded.emitted_at[:number]
    ctis = tuple((rows, cti) for rows, cti in recorded.ctis if rows <= number)
    return Recorded(recorded.place, recorded.first(number), ctis, emitted_at, recorded.time_type)


def changes_until(recorded: Recorded, at: str) -> int:
    if at.isdecimal():
        return min(int(at), recorded.rows.height)
    moment = as_moment(at, "--at", "a whole number, or ")
    if recorded.emitted_at is None:
        raise QueryError(f"--at {at}: {recorded.place} has no column 'emitted'; give a number of changes instead")
    return (
        int(np.searchsorted(np.maximum.accumulate(recorded.emitted_at), moment, side="right"))
        if len(recorded.emitted_at)
        else 0
    )


def as_moment(text: str, what: str, instead: str = "") -> int:
    """In microseconds since 1970; `instead` is what else could be written."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise QueryError(f"{what} {text}: write {instead}a time such as 2026-03-01T10:00:00") from None
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (known - BEGIN) // timedelta(microseconds=1)


def as_valid_time(text: str, kind: TimeType, what: str) -> int:
    """A time of the axis that lifetimes lie on."""
    if isinstance(kind, pl.Datetime):
        return as_moment(text, what)
    try:
        return int(text)
    except ValueError:
        raise TimeError(f"{what} {text}: the times of this changelog are whole numbers; write one") from None


def canonical_tuples(recorded: Recorded, to: int = INF) -> Tally:
    """The tuples that are there in the end, *to* a time: ends cut to it, later starts dropped."""
    whole = Tally(recorded.schema, patience=INF)
    whole.add(Chunk(recorded.rows))
    if (unknown := whole.unknown()).height:
        first = as_user_times(unknown, (VS, VE), recorded.time_type)
        shown = renamed(first, {VS: "vs", VE: "ve"}, recorded.schema).row(0, named=True)
        row = ", ".join(f"{name}={value}" for name, value in shown.items())
        raise QueryError(f"{recorded.place}: a change is about a tuple that was never inserted, or was removed: {row}")
    if to == INF:
        return whole
    cut = Tally(recorded.schema, patience=INF)
    rows = whole.table().filter(pl.col(VS) < to)
    ends = pl.min_horizontal(VE, pl.lit(to))
    cut.add(Chunk(rows.select(VS, pl.col(VS).alias(OLD), ends.alias(NEW), *recorded.schema)))
    return cut


def canonical_table(recorded: Recorded, to: int = INF) -> pl.DataFrame:
    return table_of(canonical_tuples(recorded, to), recorded.time_type)


def tritemporal_table(recorded: Recorded) -> pl.DataFrame:
    """Every row that was ever emitted: chain `k` lived `[vs, ve)`, as believed during CEDR time `[cs, ce)`.

    A removed tuple occurs once more with an empty lifetime, as in the paper.
    """
    rows = HistoryTable.of(Chunk(recorded.rows).elements()).rows
    names = list(recorded.schema)
    frame = pl.DataFrame(
        [(r.k, r.os, r.oe, r.cs, r.ce, *(r.payload[name] for name in names)) for r in rows],
        schema={K: pl.String, **dict.fromkeys((VS, NEW, CS, CE), pl.Int64), **recorded.schema},
        orient="row",
    )
    shown = as_user_times(frame, (VS, NEW), recorded.time_type)
    places = shown.with_columns(pl.when(pl.col(CE) != INF).then(pl.col(CE)).alias(CE))
    return renamed(places, {K: "k", VS: "vs", NEW: "ve", CS: "cs", CE: "ce"}, recorded.schema)
