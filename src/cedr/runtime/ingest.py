"""From what a user has to chunks: tables with time columns, or elements.

A table's rows are taken in their order, which is the order of arrival. Its time columns may be whole numbers,
timestamps or dates; times without a value mean: no end (`ve`), an insert (`ve_new`), no word about progress (`cti`).
A row whose times make no lifetime never enters a chunk; it goes to the late stream.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from cedr.columnar.chunk import NEW, OLD, TIMES, VS, Chunk, Times, chunk_of
from cedr.operators.late import Late, LateStream
from cedr.plan.schema import check_columns, first_line
from cedr.plan.source import Source
from cedr.temporal.element import Adjust, Cti, Element, ExternalCti, Insert
from cedr.temporal.errors import PayloadError, QueryError, StreamError, TimeError
from cedr.temporal.row import Row
from cedr.temporal.time import INF, MIN

TimeType = pl.DataType
"""How the user's times look: `pl.Int64`, or a `pl.Datetime` with its zone."""

ELEMENTS = (Insert, Adjust, Cti, ExternalCti)


class Ingest:
    """The chunks of one source. Keeps what the source has promised so far and what could not be used."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.late = LateStream(source.schema)
        self.time_type: TimeType | None = None
        self.highest = MIN
        self.cti = MIN
        self._arrived = 0

    def chunks(self, data: Any, chunk_size: int) -> Iterator[Chunk]:
        """The data in chunks of at most so many rows, each with the progress that holds after it."""
        pieces = element_chunks(self, data, chunk_size) if is_elements(data) else table_chunks(self, data, chunk_size)
        for chunk in pieces:
            yield self._with_progress(self._checked(chunk))

    def _checked(self, chunk: Chunk) -> Chunk:
        source = self.source
        if source.insert_only and not chunk.is_insert.all():
            adjust = Chunk(chunk.rows.filter(pl.Series(~chunk.is_insert))[:1]).elements()[0]
            said = "insert_only=True" if source.ve_new else "no ve_new column"
            raise QueryError(f"source {source.name!r} has {said}, but {adjust} came; declare it with insert_only=False")
        if source.ordered and len(chunk):
            check_order(source, chunk, self.highest)
        return chunk

    def _with_progress(self, chunk: Chunk) -> Chunk:
        """Explicit progress, or what follows from the delay the source was declared with."""
        if len(chunk):
            self.highest = max(self.highest, int((chunk.sync if self.source.ordered else chunk.vs).max()))
        delay = 0 if self.source.ordered and self.source.delay is None else self.source.delay
        if delay is not None and self.highest != MIN:
            derived = max(self.highest - delay, MIN) if self.highest != INF else MIN
            chunk = Chunk(chunk.rows, max(chunk.cti, derived), chunk.external)
        self.cti = max(self.cti, chunk.cti)
        return Chunk(chunk.rows, self.cti, chunk.external)


def is_elements(data: Any) -> bool:
    return isinstance(data, Sequence) and not isinstance(data, str) and all(isinstance(e, ELEMENTS) for e in data)


def check_order(source: Source, chunk: Chunk, highest: int) -> None:
    syncs = np.concatenate([[highest], chunk.sync])
    if (falls := syncs[1:] < syncs[:-1]).any():
        at = int(np.argmax(falls))
        element = Chunk(chunk.rows[at : at + 1]).elements()[0]
        raise StreamError(
            element,
            at,
            f"source {source.name!r} is declared ordered, but {int(syncs[at])} came before; leave ordered out",
        )


# --- elements ------------------------------------------------------------------------------------------------------


def element_chunks(ingest: Ingest, elements: Sequence[Element], chunk_size: int) -> Iterator[Chunk]:
    for start in range(0, len(elements), chunk_size):
        for piece in until_broken(elements[start : start + chunk_size]):
            for e in piece:
                check_payload(e, ingest.source)
            yield chunk_of(piece, ingest.source.schema)


def until_broken(elements: Sequence[Element]) -> Iterator[list[Element]]:
    """Cut before an element that breaks a CTI of the same piece, so that the promise is known when it comes."""
    piece: list[Element] = []
    cti = MIN
    for e in elements:
        if isinstance(e, Cti):
            cti = max(cti, e.t)
        elif isinstance(e, Insert | Adjust) and e.sync < cti:
            yield piece
            piece, cti = [], MIN
        piece.append(e)
    yield piece


def check_payload(element: Element, source: Source) -> None:
    if not isinstance(element, Insert | Adjust):
        return
    if not isinstance(element.payload, Row):
        raise PayloadError(f"{element}: source {source.name!r} takes rows, such as Row({', '.join(source.schema)})")
    check_columns(source.schema, element.payload, f"{element}: source {source.name!r}")


# --- tables --------------------------------------------------------------------------------------------------------


def as_frame(data: Any, source: Source) -> pl.DataFrame:
    """A polars, Arrow or pandas table, or a list of mappings, as a polars frame."""
    if isinstance(data, pl.DataFrame):
        return data
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if isinstance(data, Sequence) and all(isinstance(row, Mapping) for row in data):
        return pl.DataFrame([dict(row) for row in data], infer_schema_length=None)
    if type(data).__module__.startswith("pandas"):
        return pl.from_pandas(data)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return pl.DataFrame(data)
    raise QueryError(
        f"source {source.name!r} cannot read a {type(data).__name__}; give a polars, Arrow or pandas table, a list of "
        "mappings, or a list of elements such as cedr.Insert(vs, ve, Row(...))"
    )


def table_chunks(ingest: Ingest, data: Any, chunk_size: int) -> Iterator[Chunk]:
    source, frame = ingest.source, as_frame(data, ingest.source)
    if not frame.height:
        return
    if source.vs is None:
        raise QueryError(
            f"source {source.name!r} names no time column, so it cannot read a table; "
            f'declare it with cedr.source({source.name!r}, ..., vs="column of the start times")'
        )
    rows, told = timed_rows(ingest, frame)
    for start in range(0, max(rows.height, 1), chunk_size):
        end = min(start + chunk_size, rows.height)
        yield from until_broken_promise(rows[start:end], told[start : end + 1], ingest.cti)


def timed_rows(ingest: Ingest, frame: pl.DataFrame) -> tuple[pl.DataFrame, Times]:
    """Times and payload of the rows that say something; the progress told before each of them, and before the end."""
    source = ingest.source
    wanted = [c for c in (source.vs, source.ve, source.ve_new, source.cti) if c]
    wanted += [source.duration] if isinstance(source.duration, str) and not source.ve else []
    check_columns([*source.schema, *wanted], frame.schema, f"table for source {source.name!r}")
    ingest.time_type = time_type(frame[wanted[0]].dtype)
    times = {c: as_chronons(frame[c], source) for c in wanted}
    vs = times[wanted[0]]
    end = times[source.ve].fill_null(INF) if source.ve else lengthened(vs, source, times)
    new = times[source.ve_new] if source.ve_new else pl.Series([None] * frame.height, dtype=pl.Int64)
    is_adjust = new.is_not_null()
    ctis = times[source.cti].fill_null(MIN) if source.cti else pl.Series(np.full(frame.height, MIN))
    rows = pl.DataFrame({VS: vs, OLD: end.zip_with(is_adjust, vs), NEW: new.zip_with(is_adjust, end)}).hstack(
        payload(frame, source).get_columns()
    )
    return set_aside(ingest, rows, ctis, is_adjust)


def payload(frame: pl.DataFrame, source: Source) -> pl.DataFrame:
    try:
        return frame.select(pl.col(name).cast(kind) for name, kind in source.schema.items())
    except PolarsError as e:
        raise PayloadError(f"table for source {source.name!r}: {first_line(e)}") from None


def lengthened(vs: pl.Series, source: Source, times: Mapping[str, pl.Series]) -> pl.Series:
    """The end from the length of the lifetime."""
    length = times[source.duration].fill_null(INF) if isinstance(source.duration, str) else source.duration
    if isinstance(length, int) and length == INF:
        return pl.Series(np.full(len(vs), INF))
    frame = pl.DataFrame({"vs": vs}).with_columns(length=length)
    endless = (pl.col("length") == INF) | (pl.col("vs") > INF - pl.col("length"))
    return frame.select(pl.when(endless).then(INF).otherwise(pl.col("vs") + pl.col("length")).alias("end"))["end"]


def set_aside(ingest: Ingest, rows: pl.DataFrame, ctis: pl.Series, is_adjust: pl.Series) -> tuple[pl.DataFrame, Times]:
    """Rows whose times make no lifetime go to the late stream; rows that only tell progress leave their word behind."""
    vs, old, new = (rows[name] for name in TIMES)
    only_progress = vs.is_null() & (ctis > MIN)
    good_insert = ~is_adjust & (new > vs)
    good_adjust = is_adjust & (old > vs) & (new >= vs) & (new != old)
    good = (good_insert | good_adjust).fill_null(False)
    first, ingest._arrived = ingest._arrived, ingest._arrived + rows.height
    if (bad := ~good & ~only_progress).any():
        reject(ingest, rows.filter(bad), first + np.flatnonzero(bad.to_numpy()))
    told = np.maximum.accumulate(np.concatenate([[MIN], ctis.to_numpy()]))
    kept = np.flatnonzero(good.to_numpy())
    return (rows if len(kept) == rows.height else rows[kept]), told[np.append(kept, rows.height)]


def reject(ingest: Ingest, rows: pl.DataFrame, positions: Times) -> None:
    promise = "its times make no lifetime: an insert needs vs < ve, an adjust vs < ve, vs <= ve_new and ve_new != ve"
    late = Late(rows, positions, "no_lifetime", promise)
    if ingest.source.late == "raise":
        raise ingest.late.error([late])
    ingest.late.add(late)


def until_broken_promise(rows: pl.DataFrame, told: Times, known: int) -> Iterator[Chunk]:
    """Cut before a row that breaks a CTI told inside the piece, so that the promise is known when it comes.

    `told[i]` is the progress told before row i, the last one that told before the end; `known` what was known before.
    """
    sync, start = Chunk(rows).sync, 0
    while len(broken := np.flatnonzero((sync[start:] < told[start:-1]) & (told[start:-1] > known))):
        cut = start + int(broken[0])
        known = int(told[cut])
        yield Chunk(rows[start:cut], known)
        start = cut
    yield Chunk(rows[start:], int(told[-1]))


# --- times ---------------------------------------------------------------------------------------------------------


def time_type(kind: pl.DataType) -> TimeType:
    if isinstance(kind, pl.Datetime):
        return pl.Datetime("us", kind.time_zone)
    return pl.Datetime("us") if kind == pl.Date else pl.Int64()


def as_chronons(times: pl.Series, source: Source) -> pl.Series:
    """Whole numbers as they are; timestamps, dates and durations as microseconds."""
    kind = times.dtype
    if kind == pl.Date:
        return times.cast(pl.Datetime("us")).cast(pl.Int64)
    if isinstance(kind, pl.Datetime):
        return times.dt.cast_time_unit("us").cast(pl.Int64)
    if isinstance(kind, pl.Duration):
        return times.dt.cast_time_unit("us").cast(pl.Int64)
    if kind.is_integer():
        return times.cast(pl.Int64)
    if kind == pl.Null:
        return times.cast(pl.Int64)
    hint = "parse it first: pl.col(...).str.to_datetime()" if kind == pl.String else "cast it to Int64 or a timestamp"
    raise TimeError(f"source {source.name!r}: time column {times.name!r} is of type {kind}; {hint}")


def as_user_times(frame: pl.DataFrame, columns: Iterable[str], kind: TimeType) -> pl.DataFrame:
    """Chronons back in the user's type; no end is a missing value."""
    finite = [pl.when((pl.col(c) != INF) & (pl.col(c) != MIN)).then(pl.col(c)).cast(kind).alias(c) for c in columns]
    return frame.with_columns(finite)
