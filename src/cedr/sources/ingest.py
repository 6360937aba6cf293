"""Turns tables with time columns, or elements, into chunks.

The order of a table's rows is the order of arrival. Its time columns may be whole numbers, timestamps or dates; a
missing time means: no end (`ve`), an insert (`ve_new`), no progress (`cti`). A row whose times are not a lifetime, or
that is further ahead of the clock than its source allows, goes to the late stream instead of a chunk. A row that is a
punctuation becomes a promise.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import time_ns
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import PanicException, PolarsError

from cedr.columnar.chunk import FILE, NEW, OLD, TIMES, VS, Chunk, Times, chunk_of
from cedr.columnar.promises import NONE, Promises
from cedr.operators.late import Late, LateStream, Reason, naming_files
from cedr.plan.node import Node
from cedr.plan.nodes.source import Source
from cedr.plan.real_lengths import check_lengths
from cedr.plan.schema import check_columns, first_line
from cedr.sources.event_time import needed_columns
from cedr.sources.keys import highest_of_keys
from cedr.sources.progress import Partition, ProgressReport, SourceProgress, highest_by
from cedr.sources.punctuation_rows import PunctuationGroup, about_everything, grouped, marked
from cedr.sources.row_times import NO_END, RowTimes, row_times
from cedr.sources.timed_table import Externals, TimedTable
from cedr.sources.user_times import TimeType, check_alike
from cedr.temporal.element import Adjust, Cti, Element, ExternalCti, Insert
from cedr.temporal.errors import PayloadError, QueryError, StreamError, TimeError
from cedr.temporal.punctuation import Punctuation
from cedr.temporal.row import Row
from cedr.temporal.time import INF, MIN, show

ELEMENTS = (Insert, Adjust, Cti, Punctuation, ExternalCti)

Clock = Callable[[], int]
"""The wall-clock time, in microseconds since 1970."""


def wall_clock() -> int:
    return time_ns() // 1000


@dataclass(frozen=True)
class IngestedRows:
    """Rows in arrival order, and the progress after them."""

    rows: pl.DataFrame
    report: ProgressReport
    files: tuple[str, ...] = ()
    """As in a chunk."""


class Ingest:
    """The chunks of one source. Keeps the progress of the source and its late rows."""

    def __init__(self, source: Source, clock: Clock = wall_clock, query: Node | None = None) -> None:
        """`query` is checked if the times are whole numbers without a unit."""
        self.source, self.clock, self.query = source, clock, query
        self.late = LateStream(source.schema)
        self.time_type: TimeType | None = None
        self.progress = SourceProgress(source)
        self._arrived = 0

    def chunks(self, data: Any, chunk_size: int) -> Iterator[Chunk]:
        """The data in chunks of at most `chunk_size` rows, each with the progress after it."""
        for piece in self.pieces(data, chunk_size):
            if self.source.ordered and piece.rows.height:
                check_order(self.source, Chunk(piece.rows), self.progress)
            cti = self.progress.update([piece.report])
            yield Chunk(piece.rows, cti, piece.report.external, self.progress.take_promises(), piece.files)

    def pieces(self, data: Any, chunk_size: int) -> Iterator[IngestedRows]:
        """The data in pieces, each with what the source itself reports about progress."""
        found = element_pieces(self, data, chunk_size) if is_elements(data) else table_pieces(self, data, chunk_size)
        for piece in found:
            yield self._checked(piece)

    def _checked(self, piece: IngestedRows) -> IngestedRows:
        source, chunk = self.source, Chunk(piece.rows)
        if source.insert_only and not chunk.is_insert.all():
            adjust = Chunk(chunk.rows.filter(pl.Series(~chunk.is_insert))[:1]).elements()[0]
            why = "insert_only=True" if source.ve_new else "no ve_new column"
            raise QueryError(f"source {source.name!r} has {why}, but got {adjust}; declare it with insert_only=False")
        return piece

    def report(
        self,
        rows: pl.DataFrame,
        partitions: pl.Series | None,
        ctis: dict[Partition, int],
        external: Externals = (),
        promises: Promises = NONE,
    ) -> ProgressReport:
        """The progress of these rows, together with their CTIs and punctuations."""
        chunk, by = Chunk(rows), list(self.source.progress_by)
        syncs = chunk.sync if self.source.external else None
        if by:
            keys = highest_of_keys(rows.select(by), chunk.vs) if len(chunk) else None
            return ProgressReport({}, ctis, external, syncs, self.clock(), keys, promises)
        highest = highest_by(chunk.sync if self.source.ordered else chunk.vs, partitions)
        return ProgressReport(highest, ctis, external, syncs, self.clock(), promises=promises)

    def fix_time_type(self, kind: TimeType) -> None:
        """The first table determines the time type; the others must have the same."""
        if self.query is not None and not isinstance(kind, pl.Datetime):
            check_lengths(self.source, self.query)
            self.query = None
        if self.time_type is None:
            self.time_type = kind
        check_alike(self.source, self.time_type, kind)

    def too_early(self, vs: pl.Series) -> pl.Series | None:
        """Which starts are further ahead of the clock than the source allows; None if there are none."""
        if self.source.max_ahead is None:
            return None
        found = (vs > self.clock() + self.source.max_ahead).fill_null(False)
        return found if found.any() else None

    def reject(self, rows: pl.DataFrame, positions: Times, reason: Reason, promise: str | pl.Series) -> None:
        late = Late(rows, positions, reason, promise)
        if self.source.late == "raise":
            raise self.late.error([late])
        self.late.add(late)

    def reject_early(self, rows: pl.DataFrame, positions: Times, files: pl.Series | None = None) -> None:
        ahead, now = show(self.source.max_ahead or 0), show(self.clock())
        promise = f"it starts more than {ahead} after {now}, when it arrived"
        self.reject(rows, positions, "from_the_future", promise if files is None else naming_files(promise, files))


def is_elements(data: Any) -> bool:
    return isinstance(data, Sequence) and not isinstance(data, str) and all(isinstance(e, ELEMENTS) for e in data)


def check_order(source: Source, chunk: Chunk, progress: SourceProgress) -> None:
    highest = max((partition.highest for partition in progress.partitions.values()), default=MIN)
    syncs = np.concatenate([[highest], chunk.sync])
    if (falls := syncs[1:] < syncs[:-1]).any():
        at = int(np.argmax(falls))
        element = Chunk(chunk.rows[at : at + 1]).elements()[0]
        raise StreamError(
            element,
            at,
            f"source {source.name!r} is declared ordered, but an earlier row has {int(syncs[at])}; remove ordered=True",
        )


# --- elements ------------------------------------------------------------------------------------------------------


def element_pieces(ingest: Ingest, elements: Sequence[Element], chunk_size: int) -> Iterator[IngestedRows]:
    for start in range(0, len(elements), chunk_size):
        slice_ = elements[start : start + chunk_size]
        for e in slice_:
            check_payload(e, ingest.source)
        for piece in until_broken(slice_):
            chunk = chunk_of(piece, ingest.source.schema)
            rows = in_time(ingest, chunk.rows)
            ctis: dict[Partition, int] = {None: chunk.cti} if chunk.cti != MIN else {}
            yield IngestedRows(rows, ingest.report(rows, None, ctis, chunk.external, chunk.promises))


def in_time(ingest: Ingest, rows: pl.DataFrame) -> pl.DataFrame:
    first, ingest._arrived = ingest._arrived, ingest._arrived + rows.height
    early, kept = ingest.too_early(rows[VS]), rows
    if early is not None:
        ingest.reject_early(rows.filter(early), first + np.flatnonzero(early.to_numpy()))
        kept = rows.filter(~early)
    if ingest.source.ends and (endless := rows[NEW] == INF).any():
        if early is not None:
            endless = endless & ~early
        ingest.reject(rows.filter(endless), first + np.flatnonzero(endless.to_numpy()), "no_lifetime", NO_END)
        kept = kept.filter(pl.col(NEW) < INF)
    return kept


def until_broken(elements: Sequence[Element]) -> Iterator[list[Element]]:
    """Cut before an element that breaks a promise of the same piece, so that the promise is known when it arrives."""
    piece: list[Element] = []
    promised: list[Punctuation] = []
    cti = MIN
    for e in elements:
        if isinstance(e, Cti):
            cti = max(cti, e.t)
        elif isinstance(e, Punctuation):
            promised.append(e)
        elif isinstance(e, Insert | Adjust) and (e.sync < cti or any(p.forbids(e.payload, e.sync) for p in promised)):
            yield piece
            piece, promised, cti = [], [], MIN
        piece.append(e)
    yield piece


def check_payload(element: Element, source: Source) -> None:
    if isinstance(element, Punctuation):
        check_columns(element.attributes, source.schema, f"{element}: source {source.name!r}")
    if not isinstance(element, Insert | Adjust):
        return
    if not isinstance(element.payload, Row):
        raise PayloadError(f"{element}: source {source.name!r} requires rows, such as Row({', '.join(source.schema)})")
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


def table_pieces(ingest: Ingest, data: Any, chunk_size: int) -> Iterator[IngestedRows]:
    source, frame = ingest.source, as_frame(data, ingest.source)
    if not frame.height:
        return
    if source.vs is None:
        raise QueryError(
            f"source {source.name!r} has no time column, so it cannot read a table; "
            f'declare it with cedr.source({source.name!r}, ..., vs="column of the start times")'
        )
    ctis_by_partition, timed = timed_rows(ingest, frame)
    for start, end, promises in timed.cuts(chunk_size, ingest.progress.cti):
        rows = timed.rows[start:end]
        if timed.partitions is None:
            cti = int(timed.ctis[end])
            ctis: dict[Partition, int] = {None: cti} if cti != MIN else {}
            yield IngestedRows(rows, ingest.report(rows, None, ctis, promises=promises), timed.files)
        else:
            ctis = ctis_by_partition if end == timed.rows.height else {}
            report = ingest.report(rows, timed.partitions[start:end], ctis, promises=promises)
            yield IngestedRows(rows, report, timed.files)
    if timed.external:
        yield IngestedRows(timed.rows[:0], ingest.report(timed.rows[:0], None, {}, timed.external))


def timed_rows(ingest: Ingest, frame: pl.DataFrame) -> tuple[dict[Partition, int], TimedTable]:
    source = ingest.source
    check_columns(needed_columns(source, frame.columns), frame.schema, f"table for source {source.name!r}")
    external, frame = external_rows(source, frame)
    times = row_times(frame, source)
    ingest.fix_time_type(times.kind)
    vs, end, ctis = times.vs, times.end, times.ctis
    if (changed := times.ve_new) is not None:
        is_adjust = changed.is_not_null()
        old, new = end.zip_with(is_adjust, vs), changed.zip_with(is_adjust, end)
    else:
        is_adjust, old, new = None, vs, end
    payloads, is_punctuation = payload(frame, source), marked(source, frame)
    if times.wrong is not None:
        ctis = ctis.set(times.wrong.is_not_null(), MIN)
        is_punctuation = None if is_punctuation is None else is_punctuation & times.wrong.is_null()
    if is_punctuation is not None:
        everything = is_punctuation & about_everything(source, payloads)
        ctis = pl.Series(np.where(everything, np.maximum(ctis, vs.fill_null(INF)), ctis))
    rows = pl.DataFrame({VS: vs, OLD: old, NEW: new}).hstack(payloads.get_columns())
    partitions = frame[source.partition] if source.partition else None
    valid_ctis, timed = without_rejected(ingest, rows, times, ctis, is_adjust, is_punctuation, partitions, external)
    by_partition = highest_by(valid_ctis.to_numpy(), partitions) if partitions is not None else {}
    return {partition: cti for partition, cti in by_partition.items() if cti != MIN}, timed


def external_rows(source: Source, frame: pl.DataFrame) -> tuple[Externals, pl.DataFrame]:
    """The rows that are external CTIs, and the others."""
    if source.counts is None:
        return (), frame
    counts = frame.filter(pl.col(source.counts).is_not_null())
    if not counts.height:
        return (), frame
    spans = row_times(counts, source)
    if spans.wrong is not None and (wrong := spans.wrong.drop_nulls()).len():
        raise TimeError(f"source {source.name!r}, a row with a count: {wrong[0]}")
    found = tuple(
        ExternalCti(vs, ve, int(n)) for vs, ve, n in zip(spans.vs, spans.end, counts[source.counts], strict=True)
    )
    return found, frame.filter(pl.col(source.counts).is_null())


def payload(frame: pl.DataFrame, source: Source) -> pl.DataFrame:
    try:
        return frame.select(pl.col(name).cast(kind) for name, kind in source.schema.items())
    except (PolarsError, PanicException) as e:  # polars panics where it cannot print a date that is too far away
        raise PayloadError(f"table for source {source.name!r}: {first_line(e)}") from None


def without_rejected(
    ingest: Ingest,
    rows: pl.DataFrame,
    times: RowTimes,
    ctis: pl.Series,
    is_adjust: pl.Series | None,
    is_punctuation: pl.Series | None,
    partitions: pl.Series | None,
    external: Externals,
) -> tuple[pl.Series, TimedTable]:
    """Moves rows that cannot be events to the late stream; rows that only report progress are removed.

    Also returns the CTIs that count: a row from the future has none.
    """
    vs, old, new = (rows[name] for name in TIMES)
    only_progress = vs.is_null() & (ctis > MIN)
    good = new > vs
    if is_adjust is not None:
        good = (~is_adjust & good) | (is_adjust & (old > vs) & (new >= vs) & (new != old))
    good = good.fill_null(False)
    if is_punctuation is not None:
        only_progress, good = only_progress | is_punctuation, good & ~is_punctuation
    if times.wrong is not None:
        usable = times.wrong.is_null()
        only_progress, good = only_progress & usable, good & usable
    first, ingest._arrived = ingest._arrived, ingest._arrived + rows.height
    if (bad := ~good & ~only_progress).any():
        positions = first + np.flatnonzero(bad.to_numpy())
        ingest.reject(rows.filter(bad), positions, "no_lifetime", times.messages(bad))
    early = ingest.too_early(vs)
    if early is not None and (early := early & good).any():
        from_files = None if times.files is None else times.files.filter(early)
        ingest.reject_early(rows.filter(early), first + np.flatnonzero(early.to_numpy()), from_files)
        good, ctis = good & ~early, ctis.set(early, MIN)
    progress = progress_before(ctis)
    files, numbers = times.numbered_files()
    filed = rows.with_columns(numbers.alias(FILE)) if len(files) > 1 else rows
    if good.all():
        return ctis, TimedTable(filed, progress, partitions, external, [], files)
    kept = np.flatnonzero(good.to_numpy())
    progress = progress[np.append(kept, rows.height)]
    kept_partitions = None if partitions is None else partitions[kept]
    punctuations = punctuations_between(ingest.source, rows, is_punctuation, kept)
    return ctis, TimedTable(filed[kept], progress, kept_partitions, external, punctuations, files)


def progress_before(ctis: pl.Series) -> Times:
    """The progress reported before each row, and at the end."""
    progress = np.full(len(ctis) + 1, MIN)
    if ctis.max() != MIN:
        np.maximum.accumulate(ctis.to_numpy(), out=progress[1:])
    return progress


def punctuations_between(
    source: Source, rows: pl.DataFrame, is_punctuation: pl.Series | None, kept: Times
) -> list[PunctuationGroup]:
    """The punctuations between the rows that are kept."""
    if is_punctuation is None:
        return []
    found = rows.filter(is_punctuation)
    places = np.searchsorted(kept, np.flatnonzero(is_punctuation.to_numpy()))
    return grouped(source, found.drop(TIMES), found[VS].fill_null(INF).to_numpy(), places)
