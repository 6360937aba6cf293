"""Packing: rows of a source become packets for the shards of every stage the source leads to.

Runs in the tasks that read a source. Rows are checked and get their lifetimes, go through the stateless operators that
follow the source, and are split by shard. Progress reports go to every shard. A packer does not know other tasks, so
the shards compute the promise from the reports of all.
"""

from collections.abc import Iterable, Iterator

import polars as pl

from cedr.columnar.chunk import Chunk
from cedr.columnar.promises import NONE
from cedr.columnar.sharding import split
from cedr.plan.partitioning import Exchange
from cedr.runtime.engine import Engine
from cedr.runtime.spark.driver.job import SparkJob
from cedr.runtime.spark.shard.cells import Cells, places_of
from cedr.runtime.spark.shard.packet import Highest, Packet, to_blob, to_header
from cedr.runtime.spark.shard.state import SpillFile, with_files
from cedr.sources.ingest import Clock, Ingest, wall_clock
from cedr.sources.keys import maxima
from cedr.sources.progress import ProgressReport
from cedr.storage.folder import Folder
from cedr.temporal.time import MIN

ROWS_AT_ONCE = 500_000
MANY_ROUNDS = 2**16
LAST_ROUND = 2**31 - 1
"""After everything else in a micro-batch."""


class Packer:
    """The packets of one part of a source; `origin` numbers the part within its micro-batch. Parts of files are in
    order: `in_turn`. Those of a DataFrame are not."""

    def __init__(
        self,
        job: SparkJob,
        source: str,
        origin: int,
        spill: SpillFile | None = None,
        clock: Clock = wall_clock,
        in_turn: bool = False,
    ) -> None:
        self.job, self.source, self.origin, self.spill = job, job.plan.sources[source], origin, spill
        self.first_round = origin * MANY_ROUNDS if in_turn else 0
        self.ingest = Ingest(self.source, clock)
        self.paths = [(path, Engine(path.fragment)) for path in job.paths_from(source)]
        self.reports: dict[int, list[ProgressReport]] = {}
        self.highest: dict[tuple[int, int], Highest] = {}
        """By exchange and round."""

    def packets(self, frames: Iterable[pl.DataFrame]) -> Iterator[Packet]:
        """All packets of this part: rows, then progress reports."""
        pieces = (piece for frame in frames for piece in self.ingest.pieces(frame, ROWS_AT_ONCE))
        parted = self.source.cti or self.source.punctuation  # only promises between rows separate them into rounds
        for number, piece in enumerate(pieces):
            seq = self.first_round + number if parted else 0
            self.reports.setdefault(seq, []).append(piece.report)
            yield from self._rows(Chunk(piece.rows, files=piece.files), seq)
        yield from self.late(self.ingest.late.take())
        yield from self._headers()
        yield from self._feedback()

    def late(self, rows: pl.DataFrame) -> Iterator[Packet]:
        """Rows that cannot be used, with the columns `reason` and `message`."""
        if rows.height:
            stage = min(path.exchange.stage for path, _ in self.paths)
            header = to_header(self.source.name)
            cells = self.job.cells(stage)
            number = cells[self.origin % len(cells)].number
            yield Packet(stage, number, "late", -1, self.origin, 0, header, to_blob(rows), rows.height)

    def _feedback(self) -> Iterator[Packet]:
        """As a packet, it is part of the micro-batch's log: a repeated batch skips the same rows."""
        if self.job.feedback is not None and (t := read_feedback(Folder(self.job.feedback))) != MIN:
            for cell in self.job.cells(self.job.last):
                yield Packet(self.job.last, cell.number, "feedback", -1, self.origin, 0, to_header(t))

    def _rows(self, chunk: Chunk, seq: int) -> Iterator[Packet]:
        for path, engine in self.paths:
            out = engine.push(path.source, chunk)
            place = path.exchange.number, seq
            self.highest[place] = highest_of(out, self.highest.get(place, NOTHING_SEEN))
            cells = self.job.cells(path.exchange.stage)
            yield from row_packets(out.rows, path.exchange, cells, self.origin, seq, self.spill, out.files)

    def _headers(self) -> Iterator[Packet]:
        stages = {path.exchange.stage for path, _ in self.paths}
        for seq, reports in self.reports.items():
            header = to_header((self.source.name, merged(reports)))
            for stage in sorted(stages):
                for cell in self.job.cells(stage):
                    yield Packet(stage, cell.number, "progress", -1, self.origin, seq, header)
        exchanges = {path.exchange.number: path.exchange for path, _ in self.paths}
        for (number, seq), highest in self.highest.items():
            cells = self.job.cells(exchanges[number].stage)
            yield from highest_packets(highest, exchanges[number], cells, self.origin, seq)


def closing(job: SparkJob, source: str) -> Iterator[Packet]:
    """Declares the end of a source, for every shard of every stage that it leads to."""
    for stage in sorted({path.exchange.stage for path in job.paths_from(source)}):
        for cell in job.cells(stage):
            yield Packet(stage, cell.number, "close", seq=LAST_ROUND, header=to_header(source))


def row_packets(
    rows: pl.DataFrame,
    exchange: Exchange,
    cells: Cells,
    origin: int,
    seq: int,
    spill: SpillFile | None = None,
    files: tuple[str, ...] = (),
) -> Iterator[Packet]:
    """The rows of an exchange, one packet for each cell that gets any."""
    if not rows.height:
        return
    if exchange.broadcast:
        parts = [rows] * len(cells)
    else:
        parts = split(rows, places_of(rows, exchange.keys, cells), len(cells))
    for cell, part in zip(cells, parts, strict=True):
        if part.height:
            packet = Packet(exchange.stage, cell.number, "rows", exchange.number, origin, seq, rows=part.height)
            packet, part = with_files(packet, part, files)
            yield spill.put(packet, part) if spill else packet._replace(blob=to_blob(part))


FEEDBACK = "feedback"


def read_feedback(folder: Folder) -> int:
    content = folder.find(FEEDBACK)
    return MIN if content is None else int(content)


def write_feedback(folder: Folder, t: int) -> None:
    folder.write(FEEDBACK, str(t).encode())


NOTHING_SEEN = Highest(MIN, MIN)


def highest_of(chunk: Chunk, before: Highest = NOTHING_SEEN) -> Highest:
    if not len(chunk):
        return before
    return Highest(max(before.sync, int(chunk.sync.max())), max(before.start, int(chunk.vs.max())))


def highest_packets(highest: Highest, exchange: Exchange, cells: Cells, origin: int, seq: int) -> Iterator[Packet]:
    """The highest times of an exchange, for cells that do not get these rows."""
    if highest != NOTHING_SEEN:
        header = to_header(highest)
        for cell in cells:
            yield Packet(exchange.stage, cell.number, "highest", exchange.number, origin, seq, header)


def merged(reports: list[ProgressReport]) -> list[ProgressReport]:
    """Equivalent reports, combined into one where their order does not matter."""
    if len(reports) < 2 or any(report.external or report.syncs is not None for report in reports):
        return reports
    highest: dict[object, int] = {}
    ctis: dict[object, int] = {}
    for report in reports:
        for whole, part in ((highest, report.highest), (ctis, report.ctis)):
            for partition, time in part.items():
                whole[partition] = max(time, whole.get(partition, time))
    keys = [report.keys for report in reports if report.keys is not None]
    promises = NONE
    for report in reports:
        promises = promises.plus(report.promises)
    at = max(report.at for report in reports)
    return [ProgressReport(highest, ctis, at=at, keys=maxima(pl.concat(keys)) if keys else None, promises=promises)]
