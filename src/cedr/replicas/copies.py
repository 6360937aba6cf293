"""The output of a replica for the merge: every change of its answer, batch by batch, as numbered Parquet files.

    folder/NAME/000000000007-000.parquet the changes of batch 7; the last row promises the progress of the replica
    folder/NAME/_copy.json               its identity
    folder/NAME/_reached.json            the last batch and the progress after it

A file is written once and never changes; a batch that is repeated after a crash finds its file there. So the merge may
read files as they arrive. A file is small enough to be read in one piece, since its promise must not overtake its rows.

Columns are those of `merge_by`: the copy's name and join time, the payload, and the times. Times are never missing, as
an adjust may change an end to infinity.
"""

import io
import json
import os
import re
from dataclasses import replace

import polars as pl

from cedr import api
from cedr.columnar.chunk import NEW, OLD, VS, Chunk, assemble, empty
from cedr.columnar.tally import Tally
from cedr.plan.schema import Schema
from cedr.runtime.spark.reader.packer import ROWS_AT_ONCE
from cedr.sinks.base import PreparedChanges, SinkError, SinkTable, TableSink, joined
from cedr.sources.files.settings import Files, files
from cedr.sources.settings import Progress, Times
from cedr.storage.folder import Folder
from cedr.stream import Stream
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, MIN

COPY, JOIN, DONE = "_copy", "_join", "_done"
START, END, NEW_END = "_start", "_end", "_new_end"
IDENTITY, REACHED = "_copy.json", "_reached.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
REMEDY = "Retire the replica {} and start another one under a new name"
ROWS = ROWS_AT_ONCE // 2
"""Maximum number of rows in one file."""


class CopySink(TableSink):
    """`join`: the time from which on the copy is complete; None if it is complete from the beginning."""

    def __init__(self, place: str | os.PathLike[str], name: str, join: int | None = None) -> None:
        if not NAME.fullmatch(name):
            raise QueryError(f"replica {name!r}: a name consists of letters, digits, '.', '_' and '-'")
        self.name, self.join = name, join
        self.folder = copy_folder(os.fspath(place), name)

    def __str__(self) -> str:
        return f"copy {self.name!r} in {self.folder.place}"

    def open(self, table: SinkTable) -> None:
        self.folder.make()
        self.folder.sweep()
        stored = self.folder.find(IDENTITY)
        if stored is None:
            identity = {"join": self.join, "table": table.to_json()}
            stored = self.folder.write_once(IDENTITY, json.dumps(identity, indent=1).encode())
        identity = json.loads(stored)
        table.check_same(SinkTable.from_json(identity["table"]), str(self))
        self.table, self.join = table, identity["join"]

    def last_batch(self) -> int | None:
        return self.reached()[0]

    def reached(self) -> tuple[int | None, int]:
        """The last batch and the progress after it."""
        return reached(self.folder)

    def prepare(self, shard: int, batch: int, changes: Chunk) -> bytes:
        return PreparedChanges(shard, changes.cti, changes.rows).to_bytes()

    def commit(self, batch: int, prepared: list[bytes]) -> None:
        last, before = self.reached()
        if self._is_new(batch, last):
            rows, cti = joined(prepared)
            if rows.height or cti > before:
                self.write(f"{batch:012d}", Chunk(rows, cti))
            self.note(batch, max(cti, before))

    def write(self, number: str, chunk: Chunk) -> None:
        """The chunk as files under this number, promise last."""
        rows = as_rows(chunk, self.name, self.join, self.table)
        for part, first in enumerate(range(0, max(rows.height, 1), ROWS)):
            buffer = io.BytesIO()
            rows[first : first + ROWS].write_parquet(buffer, compression="zstd", compression_level=1)
            self.folder.write_parquet(f"{number}-{part:03d}.parquet", buffer.getvalue(), once=True)

    def note(self, batch: int | None, cti: int) -> None:
        self.folder.write(REACHED, json.dumps({"batch": batch, "cti": cti}).encode())

    def read(self) -> pl.DataFrame:
        """The table of this copy."""
        return self.table.ordered(self.tally().table())

    def tally(self) -> Tally:
        tally = Tally(self.table.columns)
        for name in self.folder.names():
            if name.endswith(".parquet"):
                tally.add(as_chunk(self.folder.read_parquet(name), self.table))
        return tally


def copy_folder(place: str, name: str) -> Folder:
    return Folder(os.path.join(place, name), label=name, remedy=REMEDY.format(repr(name)))


def reached(folder: Folder) -> tuple[int | None, int]:
    """The progress of a copy: the last batch, and the progress after it."""
    content = folder.find(REACHED)
    if content is None:
        return None, MIN
    stored = json.loads(content)
    return stored["batch"], stored["cti"]


def as_rows(chunk: Chunk, name: str, join: int | None, table: SinkTable) -> pl.DataFrame:
    inserts = pl.col(OLD) == pl.col(VS)
    rows = chunk.rows.select(
        pl.col(VS).alias(START),
        pl.when(inserts).then(NEW).otherwise(OLD).alias(END),
        pl.when(inserts).then(None).otherwise(NEW).alias(NEW_END),
        pl.lit(None, pl.Boolean).alias(DONE),
        *table.columns,
    )
    frames = [rows, promise(chunk.cti, table)] if chunk.cti != MIN else [rows]
    copy = pl.lit(name).alias(COPY), pl.lit(join, pl.Int64).alias(JOIN)
    return timed(pl.concat(frames, how="diagonal").select(*copy, pl.all()), table)


def promise(cti: int, table: SinkTable) -> pl.DataFrame:
    """The row with the progress of a copy."""
    row = {START: [cti], END: [None], NEW_END: [None], DONE: [True], **{name: [None] for name in table.columns}}
    times = dict.fromkeys((START, END, NEW_END), pl.Int64())
    return pl.DataFrame(row, schema={**times, DONE: pl.Boolean(), **table.columns})


def timed(rows: pl.DataFrame, table: SinkTable) -> pl.DataFrame:
    """With times of the user's type, infinity as its number."""
    return rows.with_columns(pl.col(START, END, NEW_END).cast(table.time_type))


def as_chunk(rows: pl.DataFrame, table: SinkTable) -> Chunk:
    """The inverse of `as_rows`, without the promise."""
    changes = rows.filter(pl.col(DONE).is_null())
    start, end, new_end = (changes[name].cast(pl.Int64) for name in (START, END, NEW_END))
    inserts = new_end.is_null()
    old, new = end.zip_with(~inserts, start), new_end.zip_with(~inserts, end)
    return assemble(start.to_numpy(), old.to_numpy(), new.to_numpy(), changes.select(*table.columns))


def copies_of(schema: Schema, source: str = "replicas") -> Stream:
    """The source that reads the output of replicas with such an answer."""
    return api.source(
        source,
        {COPY: str, JOIN: int, **schema},
        vs=START,
        ve=END,
        times=Times(ve_new=NEW_END),
        progress=Progress(punctuation=DONE, promises=[COPY, [COPY, JOIN]]),
        valid=True,
    )


def copies_in(place: str | os.PathLike[str]) -> Files:
    return replace(files(place, "parquet"), sealed=REMEDY.format("that wrote it"))


def write_over(place: str | os.PathLike[str], name: str, table: SinkTable) -> None:
    """Declare the end of a copy."""
    sink = CopySink(place, name, INF)
    sink.table = table
    sink.folder.make()
    sink.write("over", empty(table.columns, INF))


def check_unused(sink: CopySink) -> None:
    if sink.folder.has(IDENTITY):
        raise SinkError(f"{sink} already exists; use a new name for a copy that starts from scratch")
