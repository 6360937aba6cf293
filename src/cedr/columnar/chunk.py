"""Chunks: the unit that flows between operators.

A chunk is a columnar table of inserts and adjusts in arrival order, followed by the progress that holds after them.
Each row describes how the end of one tuple changes:

    _vs  _ve_old  _ve_new        insert   _ve_old = _vs   the tuple was empty and becomes [_vs, _ve_new)
                                 remove   _ve_new = _vs   it was [_vs, _ve_old) and becomes empty
                                 adjust   else

so that most kernels need no case distinction: an insert is an adjust of an empty tuple. The sync time of a row is
`min(_ve_old, _ve_new)` in all cases. A stream may be cut into chunks anywhere; only the concatenation counts, and
rows may move ahead of a CTI because nothing after a CTI has an earlier sync time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from cedr.columnar.picked import picked
from cedr.columnar.promises import NONE, Promises, promises_of
from cedr.columnar.times import Times as Times
from cedr.temporal.element import Adjust, Cti, Element, ExternalCti, Insert
from cedr.temporal.punctuation import Punctuation
from cedr.temporal.row import Row
from cedr.temporal.time import MIN

VS, OLD, NEW = "_vs", "_ve_old", "_ve_new"
TIMES = (VS, OLD, NEW)
FILE = "_cedr_file"
"""In a table, the name of the file a row is from; in a chunk, its index in `Chunk.files`."""


@dataclass(frozen=True)
class Chunk:
    rows: pl.DataFrame
    cti: int = MIN
    external: tuple[ExternalCti, ...] = field(default=())
    promises: Promises = field(default=NONE)
    """Punctuations about parts of the stream that hold after the rows; those that the CTI implies are left out."""
    files: tuple[str, ...] = field(default=())
    """The files the rows are from, as far as known: one file for all rows, or the one at the index in column `FILE`.
    Used in messages about late rows; operators that cannot pass it on drop it."""

    def __len__(self) -> int:
        return self.rows.height

    @property
    def vs(self) -> Times:
        return self.times(VS)

    @property
    def old(self) -> Times:
        return self.times(OLD)

    @property
    def new(self) -> Times:
        return self.times(NEW)

    @property
    def sync(self) -> Times:
        return np.minimum(self.old, self.new)

    @property
    def is_insert(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return self.old == self.vs

    def times(self, name: str) -> Times:
        return self.rows[name].to_numpy()

    @property
    def payload(self) -> pl.DataFrame:
        return picked(self.rows, self.schema)

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """Names and types of the payload."""
        return {name: kind for name, kind in self.rows.schema.items() if name not in TIMES and name != FILE}

    def file_names(self, places: Times) -> pl.Series | None:
        """The files of the rows at these positions; missing where the file or the row is unknown."""
        if not self.files:
            return None
        inside = pl.Series(places).set(pl.Series((places < 0) | (places >= len(self))), None)
        if FILE in self.rows.columns:
            return pl.Series(self.files, dtype=pl.String).gather(self.rows[FILE].gather(inside))
        return pl.Series([None if place is None else self.files[0] for place in inside], dtype=pl.String)

    def without_files(self) -> "Chunk":
        if not self.files:
            return self
        return replace(self, rows=self.rows.drop(FILE) if FILE in self.rows.columns else self.rows, files=())

    def with_rows(self, rows: pl.DataFrame) -> "Chunk":
        return replace(self, rows=rows)

    def with_times(self, vs: Times, old: Times, new: Times) -> "Chunk":
        """The same payloads at other times, without rows whose end no longer changes."""
        rows = self.rows.with_columns(pl.Series(VS, vs), pl.Series(OLD, old), pl.Series(NEW, new))
        changed = old != new
        return replace(self, rows=rows if changed.all() else rows.filter(pl.Series(changed)))

    def to_arrow(self) -> pa.Table:
        return self.rows.to_arrow()

    def elements(self) -> list[Element]:
        """The chunk as elements of the temporal model."""
        names = list(self.schema)
        found: list[Element] = []
        for vs, old, new, *values in self.rows.select(*TIMES, *names).iter_rows():
            p = Row(dict(zip(names, values, strict=True)))
            found.append(Insert(vs, new, p) if old == vs else Adjust(vs, old, new, p))
        found += self.external
        found += self.promises
        return [*found, Cti(self.cti)] if self.cti != MIN else found


def chunk_of(elements: Iterable[Element], schema: dict[str, Any]) -> Chunk:
    """Elements with `Row` payloads as one chunk; its progress is the highest CTI among them."""
    columns: dict[str, list[Any]] = {name: [] for name in (*TIMES, *schema)}
    cti, external, promised = MIN, [], []
    for e in elements:
        match e:
            case Cti(t):
                cti = max(cti, t)
            case Punctuation() if e.attributes:
                promised.append(e)
            case Punctuation():
                cti = max(cti, e.before)
            case ExternalCti():
                external.append(e)
            case Insert(vs, ve, p):
                add_row(columns, schema, (vs, vs, ve), p)
            case Adjust(vs, ve, ve_new, p):
                add_row(columns, schema, (vs, ve, ve_new), p)
    rows = pl.DataFrame(columns, schema={**dict.fromkeys(TIMES, pl.Int64), **schema}, strict=False)
    return Chunk(rows, cti, tuple(external), promises_of(promised, schema) if promised else NONE)


def add_row(columns: dict[str, list[Any]], schema: dict[str, Any], times: tuple[int, int, int], p: Row) -> None:
    for name, value in zip(TIMES, times, strict=True):
        columns[name].append(value)
    for name in schema:
        value = p[name]
        columns[name].append(dict(value) if isinstance(value, Row) else value)


def empty(schema: dict[str, Any], cti: int = MIN) -> Chunk:
    return Chunk(pl.DataFrame(schema={**dict.fromkeys(TIMES, pl.Int64), **schema}), cti)


def assemble(vs: Times, old: Times, new: Times, payload: pl.DataFrame, cti: int = MIN) -> Chunk:
    times = pl.DataFrame({VS: vs, OLD: old, NEW: new}, schema=dict.fromkeys(TIMES, pl.Int64))
    return Chunk(times.hstack(payload) if payload.width else times, cti)


def concat(chunks: list[Chunk]) -> Chunk:
    """Consecutive chunks as one, with the progress of the last."""
    if len(chunks) == 1:
        return chunks[0]
    rows, files = concat_rows([(c.rows, c.files) for c in chunks])
    promises = NONE
    for c in chunks:
        promises = promises.plus(c.promises)
    return Chunk(rows, max(c.cti for c in chunks), tuple(e for c in chunks for e in c.external), promises, files)


def concat_rows(parts: list[tuple[pl.DataFrame, tuple[str, ...]]]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The rows of all parts in order, with their files."""
    different = {files for rows, files in parts if rows.height or files}
    if not different or (len(different) == 1 and all(len(files) < 2 for files in different)):
        return pl.concat([rows for rows, _ in parts], rechunk=True), next(iter(different), ())
    found: list[pl.DataFrame] = []
    names: list[str] = []
    for rows, files in parts:
        columns = [name for name in rows.columns if name != FILE]
        own = pl.col(FILE) if FILE in rows.columns else pl.lit(0 if files else None)
        found.append(rows.select(*columns, (own.cast(pl.Int32) + len(names)).alias(FILE)))
        names += files
    return pl.concat(found, rechunk=True), tuple(names)
