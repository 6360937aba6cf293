"""From what a user has to chunks: tables with time columns, or elements.

A table's rows are taken in their order, which is the order of arrival. Its time columns may be whole numbers,
timestamps or dates; times without a value mean: no end (`ve`), an insert (`ve_new`), no word about progress (`cti`).
A row whose times make no lifetime never enters a chunk; it goes to the late stream.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import time_ns
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from cedr.columnar.chunk import NEW, OLD, TIMES, VS, Chunk, Times, chunk_of
from cedr.operators.late import Late, LateStream
from cedr.plan.schema import check_columns, first_line
from cedr.plan.source import Source
from cedr.runtime.progress import Partition, Progress, Told, highest_by
from cedr.temporal.element import Adjust, Cti, Element, ExternalCti, Insert
from cedr.temporal.errors import PayloadError, QueryError, StreamError, TimeError
from cedr.temporal.row import Row
from cedr.temporal.time import INF, MIN

TimeType = pl.DataType
"""How the user's times look: `pl.Int64`, or a `pl.Datetime` with its zone."""

Externals = tuple[ExternalCti, ...]

ELEMENTS = (Insert, Adjust, Cti, ExternalCti)


@dataclass(frozen=True)
class Piece:
    """Rows in arrival order, and what holds after them."""

    rows: pl.DataFrame
    told: Told


class Ingest:
    """The chunks of one source. Keeps what the source has promised so far and what could not be used."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.late = LateStream(source.schema)
        self.time_type: TimeType | None = None
        self.progress = Progress(source)
        self._arrived = 0

    def chunks(self, data: Any, chunk_size: int) -> Iterator[Chunk]:
        """The data in chunks of at most so many rows, each with the progress that holds after it."""
        for piece in self.pieces(data, chunk_size):
            if self.source.ordered and piece.rows.height:
                check_order(self.source, Chunk(piece.rows), self.progress)
            yield Chunk(piece.rows, self.progress.hear([piece.told]), piece.told.external)

    def pieces(self, data: Any, chunk_size: int) -> Iterator[Piece]:
        """The data in pieces, each with what the source itself says about progress."""
        found = element_pieces(self, data, chunk_size) if is_elements(data) else table_pieces(self, data, chunk_size)
        for piece in found:
            yield self._checked(piece)

    def _checked(self, piece: Piece) -> Piece:
        source, chunk = self.source, Chunk(piece.rows)
        if source.insert_only and not chunk.is_insert.all():
            adjust = Chunk(chunk.rows.filter(pl.Series(~chunk.is_insert))[:1]).elements()[0]
            said = "insert_only=True" if source.ve_new else "no ve_new column"
            raise QueryError(f"source {source.name!r} has {said}, but {adjust} came; declare it with insert_only=False")
        return piece

    def told(
        self, rows: pl.DataFrame, partitions: pl.Series | None, ctis: dict[Partition, int], external: Externals = ()
    ) -> Told:
        """What these rows say about progress, beside the CTIs told."""
        chunk = Chunk(rows)
        highest = highest_by(chunk.sync if self.source.ordered else chunk.vs, partitions)
        return Told(highest, ctis, external, chunk.sync if self.source.external else None, time_ns() // 1000)


def is_elements(data: Any) -> bool:
    return isinstance(data, Sequence) and not isinstance(data, str) and all(isinstance(e, ELEMENTS) for e in data)


def check_order(source: Source, chunk: Chunk, progress: Progress) -> None:
    highest = max((heard.highest for heard in progress.partitions.values()), default=MIN)
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


def element_pieces(ingest: Ingest, elements: Sequence[Element], chunk_size: int) -> Iterator[Piece]:
    for start in range(0, len(elements), chunk_size):
        for piece in until_broken(elements[start : start + chunk_size]):
            for e in piece:
                check_payload(e, ingest.source)
            chunk = chunk_of(piece, ingest.source.schema)
            ctis: dict[Partition, int] = {None: chunk.cti} if chunk.cti != MIN else {}
            yield Piece(chunk.rows, ingest.told(chunk.rows, None, ctis, chunk.external))


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


@dataclass(frozen=True)
class Timed:
    """The rows of a table that say something, and the progress told between them.

    `told[i]` is the progress told before row i, the last one that told before the end.
    """

    rows: pl.DataFrame
    told: Times
    partitions: pl.Series | None
    external: Externals


def table_pieces(ingest: Ingest, data: Any, chunk_size: int) -> Iterator[Piece]:
    source, frame = ingest.source, as_frame(data, ingest.source)
    if not frame.height:
        return
    if source.vs is None:
        raise QueryError(
            f"source {source.name!r} names no time column, so it cannot read a table; "
            f'declare it with cedr.source({source.name!r}, ..., vs="column of the start times")'
        )
    ctis_by_partition, timed = timed_rows(ingest, frame)
    for start in range(0, max(timed.rows.height, 1), chunk_size):
        end = min(start + chunk_size, timed.rows.height)
        if timed.partitions is None:
            chunks = until_broken_promise(timed.rows[start:end], timed.told[start : end + 1], ingest.progress.cti)
            for chunk in chunks:
                ctis: dict[Partition, int] = {None: chunk.cti} if chunk.cti != MIN else {}
                yield Piece(chunk.rows, ingest.told(chunk.rows, None, ctis))
        else:
            rows, last = timed.rows[start:end], end == timed.rows.height
            yield Piece(rows, ingest.told(rows, timed.partitions[start:end], ctis_by_partition if last else {}))
    if timed.external:
        yield Piece(timed.rows[:0], ingest.told(timed.rows[:0], None, {}, timed.external))


def time_columns(source: Source) -> list[str]:
    """The columns of a table that hold times, the start first."""
    wanted = [c for c in (source.vs, source.ve, source.ve_new, source.cti) if c]
    return wanted + ([source.duration] if isinstance(source.duration, str) and not source.ve else [])


def needed_columns(source: Source) -> list[str]:
    """All columns of a table that are read: payload, times, partition and counts, each once."""
    others = [c for c in (source.partition, source.counts) if c]
    return list(dict.fromkeys([*source.schema, *time_columns(source), *others]))


def timed_rows(ingest: Ingest, frame: pl.DataFrame) -> tuple[dict[Partition, int], Timed]:
    source = ingest.source
    wanted = time_columns(source)
    check_columns(needed_columns(source), frame.schema, f"table for source {source.name!r}")
    ingest.time_type = time_type(frame[wanted[0]].dtype)
    external, frame = external_rows(source, frame)
    times = {c: as_chronons(frame[c], source) for c in wanted}
    vs = times[wanted[0]]
    end = times[source.ve].fill_null(INF) if source.ve else lengthened(vs, source, times)
    if source.ve_new:
        changed = times[source.ve_new]
        is_adjust = changed.is_not_null()
        old, new = end.zip_with(is_adjust, vs), changed.zip_with(is_adjust, end)
    else:
        is_adjust, old, new = pl.repeat(False, frame.height, eager=True), vs, end
    ctis = times[source.cti].fill_null(MIN) if source.cti else pl.Series(np.full(frame.height, MIN))
    rows = pl.DataFrame({VS: vs, OLD: old, NEW: new}).hstack(payload(frame, source).get_columns())
    partitions = frame[source.partition] if source.partition else None
    by_partition = highest_by(ctis.to_numpy(), partitions) if partitions is not None and source.cti else {}
    told = {partition: cti for partition, cti in by_partition.items() if cti != MIN}
    return told, set_aside(ingest, rows, ctis, is_adjust, partitions, external)


def external_rows(source: Source, frame: pl.DataFrame) -> tuple[Externals, pl.DataFrame]:
    """The rows that are external CTIs, and the others."""
    if source.counts is None:
        return (), frame
    counts = frame.filter(pl.col(source.counts).is_not_null())
    if not counts.height:
        return (), frame
    assert source.vs is not None
    assert source.ve is not None
    spans = zip(as_chronons(counts[source.vs], source), as_chronons(counts[source.ve], source), strict=True)
    found = tuple(
        ExternalCti(vs, INF if ve is None else ve, int(n))
        for (vs, ve), n in zip(spans, counts[source.counts], strict=True)
    )
    return found, frame.filter(pl.col(source.counts).is_null())


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


def set_aside(
    ingest: Ingest,
    rows: pl.DataFrame,
    ctis: pl.Series,
    is_adjust: pl.Series,
    partitions: pl.Series | None,
    external: Externals,
) -> Timed:
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
    if len(kept) == rows.height:
        return Timed(rows, told, partitions, external)
    told = told[np.append(kept, rows.height)]
    return Timed(rows[kept], told, None if partitions is None else partitions[kept], external)


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
