"""Rows of Parquet files, handed to Pathway in commits of 10,000; times as whole milliseconds.

Connectors of Pathway do not wait for each other. Streams that are compared by time come through one connector, mixed as
they would arrive, with a column `side` that names the stream of a row.
"""

import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pathway as pw
import pyarrow as pa
import pyarrow.parquet

COMMIT = 10_000
RENAMED = {"id": "number"}
"""`id` is taken: it is what Pathway calls rows by."""
KINDS = {pa.int64(): int, pa.float64(): float}


def mixed(folders: list[Path], first: list[float]) -> pw.Table[Any]:
    """Streams of equal length and columns as one, a row of each in turn."""
    files = list(zip(*(sorted(folder.glob("*.parquet")) for folder in folders), strict=True))
    kinds = {"side": int, **kinds_of(files[0][0])}
    return pw.io.python.read(Rows(files, first), schema=pw.schema_from_types(**kinds), autocommit_duration_ms=None)


def kinds_of(path: Path) -> dict[str, type]:
    fields = pyarrow.parquet.read_schema(path)
    kinds = [int if pa.types.is_timestamp(field.type) else KINDS.get(field.type, str) for field in fields]
    return {RENAMED.get(field.name, field.name): kind for field, kind in zip(fields, kinds, strict=True)}


def stream(folder: Path, first: list[float]) -> pw.Table[Any]:
    """`first` gets the time of the first read."""
    files = [(path,) for path in sorted(folder.glob("*.parquet"))]
    schema = pw.schema_from_types(**kinds_of(files[0][0]))
    return pw.io.python.read(Rows(files, first), schema=schema, autocommit_duration_ms=None)


class Rows(pw.io.python.ConnectorSubject):
    """Each item of `files` has one of each stream; several streams have a column `side`."""

    def __init__(self, files: list[tuple[Path, ...]], first: list[float]) -> None:
        super().__init__()
        self.files, self.first = files, first

    def run(self) -> None:
        self.first.append(time.perf_counter())
        for paths in self.files:
            sides = [self.read(path, {"side": n} if len(paths) > 1 else {}) for n, path in enumerate(paths)]
            for number, row in enumerate(chain.from_iterable(zip(*sides, strict=True)), 1):
                self.next(**row)
                if number % COMMIT == 0:
                    self.commit()
            self.commit()

    def read(self, path: Path, side: dict[str, int]) -> Iterator[dict[str, Any]]:
        table = pyarrow.parquet.read_table(path)
        names = [RENAMED.get(name, name) for name in table.column_names]
        for row in zip(*(plain(column).to_pylist() for column in table.columns), strict=True):
            yield dict(zip(names, row, strict=True), **side)


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Timestamps as milliseconds."""
    return pa.compute.divide(column.cast(pa.int64()), 1000) if pa.types.is_timestamp(column.type) else column
