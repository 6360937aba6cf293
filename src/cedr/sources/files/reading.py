"""The pieces of a split: frames with the source's columns, and what could not be read."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from cedr.columnar.chunk import FILE
from cedr.plan.nodes.source import Source
from cedr.sources.event_time import direct_column
from cedr.sources.files import clock, parquet, text
from cedr.sources.files.columns import ExpectedColumns
from cedr.sources.files.entry import BatchFiles, FilePart, InputFile, cut
from cedr.sources.files.listing import Stamp, stamp
from cedr.sources.files.settings import Files
from cedr.sources.files.unreadable import BadFileError, BadLine, ProblemError, Unreadable
from cedr.storage.folder import Folder

Piece = pl.DataFrame | Unreadable

ROWS_AT_ONCE = parquet.ROWS_AT_ONCE
BAD_LINES_AT_ONCE = 10_000


@dataclass(frozen=True)
class Split:
    """What one task reads. `origin` numbers the splits of a micro-batch, `entry` is its place in the file log. A split
    that `ends` the source is empty and the last one."""

    origin: int
    entry: int
    parts: tuple[tuple[FilePart, InputFile], ...]
    clock: str | None
    ends: bool = False


def splits(entries: list[tuple[int, BatchFiles]]) -> list[Split]:
    runs = [(number, entry, run) for number, entry in entries for run in entry.splits]
    return [
        Split(origin, number, tuple((part, entry.files[part.file]) for part in run), entry.clock, entry.ends)
        for origin, (number, entry, run) in enumerate(runs)
    ]


# --- planning ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planner:
    """Makes entries of files. If Parquet files are used as a whole or not at all, each must be in one split."""

    settings: Files
    source: Source
    parallelism: int

    def plan(
        self, found: list[tuple[str, Stamp]], written: str | None, changed: tuple[InputFile, ...] = ()
    ) -> BatchFiles:
        """`written` is the clock if it is known; `changed` are files that were read before, to be recorded again."""
        written = written or self.clock([path for path, _ in found])
        expected = ExpectedColumns(self.source, written)
        planned = tuple(self._file(path, seen, expected) for path, seen in found) + changed
        by_row_group = self.settings.format == "parquet" and self.settings.on_bad == "raise"
        return BatchFiles(planned, cut(planned, self.parallelism, by_row_group), written)

    def clock(self, paths: list[str]) -> str | None:
        """From the schema, or from the first file that determines it."""
        return clock.declared(self.source) or next(filter(None, map(self._clock_in, paths)), None)

    def _clock_in(self, path: str) -> str | None:
        assert self.source.vs is not None
        if self.settings.format == "parquet":
            return parquet.clock_in(path, self.source)
        column = direct_column(self.source, self.source.vs)
        return text.clock_in(path, self.settings, self.source.vs, column)

    def _file(self, path: str, seen: Stamp, expected: ExpectedColumns) -> InputFile:
        if self.settings.format != "parquet":
            return InputFile(path, seen)
        try:
            return InputFile(path, seen, parquet.row_groups(path, expected))
        except ProblemError as e:
            if self.settings.on_bad == "raise":
                raise BadFileError(path, e.what, "planning") from None
            return InputFile(path, seen, bad=e.what)


# --- reading -------------------------------------------------------------------------------------------------------


def pieces(split: Split, settings: Files, source: Source) -> Iterator[Piece]:
    """All rows of a split; small files are combined into larger frames."""
    expected = ExpectedColumns(source, split.clock, settings.format == "parquet")
    names = pl.Enum(list(dict.fromkeys(file.path for _, file in split.parts)))
    waiting: list[pl.DataFrame] = []
    for part, file in split.parts:
        for piece in file_pieces(part, file, settings, expected):
            if isinstance(piece, Unreadable):
                yield piece
                continue
            piece = piece.with_columns(pl.Series(FILE, [file.path], dtype=names).new_from_index(0, piece.height))
            if waiting and (piece.schema != waiting[0].schema or rows_of([*waiting, piece]) > ROWS_AT_ONCE):
                yield pl.concat(waiting)
                waiting = []
            if piece.height <= ROWS_AT_ONCE:
                waiting.append(piece)
            else:
                yield from piece.iter_slices(ROWS_AT_ONCE)
    if waiting:
        yield pl.concat(waiting)


def rows_of(frames: list[pl.DataFrame]) -> int:
    return sum(frame.height for frame in frames)


def file_pieces(part: FilePart, file: InputFile, settings: Files, expected: ExpectedColumns) -> Iterator[Piece]:
    try:
        check_stamp(file)
        if file.bad is not None:
            raise ProblemError(file.bad)
        if settings.format == "parquet":
            yield from parquet_pieces(part, file, settings, expected)
        else:
            check_not_empty(file, settings)
            yield from text_pieces(file, settings, expected)
        check_stamp(file)
    except (ProblemError, OSError) as e:
        problem = e if isinstance(e, ProblemError) else ProblemError(f" cannot be opened ({e.strerror or e})")
        rows = None if file.rows is None else sum(file.rows[part.first : part.end])
        yield Unreadable.of_file(file.path, rows, problem)


def check_stamp(file: InputFile) -> None:
    now = stamp(file.path)
    if now is None:
        raise ProblemError(" was planned for this batch and no longer exists", "gone")
    if now != file.stamp:
        raise ProblemError(f" was planned for this batch with {file.stamp} and has changed to {now}", "changed")


def check_not_empty(file: InputFile, settings: Files) -> None:
    """A text file of 0 bytes is neither a gzip file nor a table with a header line. It was probably not written
    completely, as after a power cut."""
    if file.stamp.size == 0 and file.path.lower().endswith(".gz"):
        raise ProblemError(" is empty (0 bytes): a gzip file without content has a header")
    if file.stamp.size == 0 and settings.format == "csv" and settings.columns is None:
        raise ProblemError(" is empty (0 bytes): a CSV file without rows has a header line")


def parquet_pieces(
    part: FilePart, file: InputFile, settings: Files, expected: ExpectedColumns
) -> Iterator[pl.DataFrame]:
    if settings.sealed is not None:
        folder, name = os.path.split(file.path)
        Folder(folder, os.path.basename(folder), settings.sealed).read_parquet_bytes(name)
    if settings.on_bad == "late":  # the whole file or nothing: read it to its end before using any row
        for _ in parquet.frames(file.path, part.first, part.end, expected):
            pass
    yield from parquet.frames(file.path, part.first, part.end, expected)


def text_pieces(file: InputFile, settings: Files, expected: ExpectedColumns) -> Iterator[Piece]:
    bad: list[BadLine] = []
    for piece in text.TextFileReader(file.path, settings, expected).pieces():
        if isinstance(piece, BadLine):
            bad.append(piece)
        else:
            yield piece
        if bad and (settings.on_bad == "raise" or len(bad) == BAD_LINES_AT_ONCE):
            yield Unreadable.of_lines(file.path, bad)
            bad = []
    if bad:
        yield Unreadable.of_lines(file.path, bad)
