"""What one micro-batch reads: its files and their splits. Plain data, so that it can be stored.

A split is a sequence of parts in the order of the files; a part is a whole file or some row groups of a Parquet file.
Planning reads as little as possible: the footers of Parquet files, and the first lines of text files until the clock
is known.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from cedr.sources.files.listing import Stamp


@dataclass(frozen=True)
class InputFile:
    """`rows` are those of each row group of a Parquet file; `bad` is the reason why the file cannot be read at all."""

    path: str
    stamp: Stamp
    rows: tuple[int, ...] | None = None
    bad: str | None = None


@dataclass(frozen=True)
class FilePart:
    """Row groups `first` to `end` (not included) of a Parquet file, or a whole file."""

    file: int
    first: int = 0
    end: int = 0


@dataclass(frozen=True)
class BatchFiles:
    """`clock` is how the times of the source are written, see `clock.py`; it is the same for all batches. A batch that
    `ends` the source has no files: it declares the end of the input."""

    files: tuple[InputFile, ...]
    splits: tuple[tuple[FilePart, ...], ...]
    clock: str | None
    ends: bool = False

    @cached_property
    def stamps(self) -> dict[str, Stamp]:
        return {file.path: file.stamp for file in self.files}

    def to_json(self) -> bytes:
        files = [[f.path, f.stamp.size, f.stamp.modified, f.rows, f.bad] for f in self.files]
        splits = [[[p.file, p.first, p.end] for p in split] for split in self.splits]
        end = {"ends": True} if self.ends else {}
        return json.dumps({"clock": self.clock, "files": files, "splits": splits, **end}).encode()

    @staticmethod
    def from_json(content: bytes) -> "BatchFiles":
        values = json.loads(content)
        files = tuple(
            InputFile(path, Stamp(size, modified), None if rows is None else tuple(rows), bad)
            for path, size, modified, rows, bad in values["files"]
        )
        splits = tuple(tuple(FilePart(*part) for part in split) for split in values["splits"])
        return BatchFiles(files, splits, values["clock"], values.get("ends", False))


def end(clock: str | None) -> BatchFiles:
    """The last entry of a source: one empty split."""
    return BatchFiles((), ((),), clock, ends=True)


def cut(files: Sequence[InputFile], parallelism: int, by_row_group: bool) -> tuple[tuple[FilePart, ...], ...]:
    """Splits of about equal size, at least `parallelism` of them if possible."""
    pieces = list(row_group_parts(files) if by_row_group else whole_parts(files))
    weights = [weight for _, weight in pieces]
    return tuple(joined([part for part, _ in pieces[start:end]]) for start, end in runs(weights, parallelism))


def whole_parts(files: Sequence[InputFile]) -> Iterator[tuple[FilePart, int]]:
    for number, file in enumerate(files):
        yield FilePart(number, 0, len(file.rows or ())), file.stamp.size if file.rows is None else sum(file.rows)


def row_group_parts(files: Sequence[InputFile]) -> Iterator[tuple[FilePart, int]]:
    for number, file in enumerate(files):
        if not file.rows:
            yield FilePart(number), 0
        for group, rows in enumerate(file.rows or ()):
            yield FilePart(number, group, group + 1), rows


def joined(parts: Sequence[FilePart]) -> tuple[FilePart, ...]:
    """Merges consecutive row groups of the same file into one part."""
    found: list[FilePart] = []
    for part in parts:
        if found and found[-1].file == part.file:
            found[-1] = FilePart(part.file, found[-1].first, part.end)
        else:
            found.append(part)
    return tuple(found)


def runs(weights: Sequence[int], count: int) -> Iterator[tuple[int, int]]:
    """Cut into `count` consecutive, non-empty runs of about equal weight."""
    start, left = 0, sum(weights)
    for runs_left in range(min(count, len(weights)), 0, -1):
        end, weight = start + 1, weights[start]
        while len(weights) - end > runs_left - 1 and (weight + weights[end] / 2) * runs_left <= left:
            weight += weights[end]
            end += 1
        yield start, end
        start, left = end, left - weight
