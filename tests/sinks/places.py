"""Places for tables, and how to bring batches to them as a driver and its shards do."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

import polars as pl
from postgres_server import Server

from cedr import sinks
from cedr.columnar.chunk import VS, Chunk, chunk_of
from cedr.columnar.tally import VE
from cedr.sinks.base import SinkTable, TableSink
from cedr.temporal import Cti, Element, Event, History, Row

SCHEMA = {"m": pl.Int64(), "v": pl.Int64()}


@dataclass
class ParquetPlace:
    """In a folder, or a bucket."""

    path: Path | str

    def sink(self) -> TableSink:
        return sinks.parquet(self.path)


@dataclass
class PostgresPlace:
    server: Server
    schema: str

    def sink(self) -> TableSink:
        return sinks.postgres(self.server.dsn, f"{self.schema}.answers")


@dataclass
class DuckdbPlace:
    path: Path

    def sink(self) -> TableSink:
        return sinks.duckdb(self.path.with_suffix(".duckdb"), "answers")


@dataclass
class MemoryPlace:
    """Memory is not left by a restart, so it is always the same sink."""

    path: Path
    only: TableSink = field(default_factory=sinks.memory)

    def sink(self) -> TableSink:
        return self.only


def opened(place, table: SinkTable) -> TableSink:
    sink = place.sink()
    sink.open(table)
    return sink


def in_shard(sink: TableSink) -> TableSink:
    """The sink as a shard's process gets it."""
    return pickle.loads(pickle.dumps(sink))


def send(sink: TableSink, batch: int, chunks: Sequence[Chunk], workers: Sequence[TableSink] | None = None) -> None:
    """One batch: prepared by the shards, committed by the driver."""
    workers = workers or [in_shard(sink) for _ in chunks]
    sink.commit(
        batch, [w.prepare(shard, batch, chunk) for shard, (w, chunk) in enumerate(zip(workers, chunks, strict=True))]
    )


def by_shard(elements: Sequence[Element], shards: int, schema=SCHEMA) -> list[Chunk]:
    """Rows go to the shard of their payload, the same in every run, and progress to all."""

    def belongs(e: Element, shard: int) -> bool:
        return isinstance(e, Cti) or crc32(str(e.payload).encode()) % shards == shard

    return [chunk_of([e for e in elements if belongs(e, shard)], schema) for shard in range(shards)]


def history_of(table: SinkTable, shown: pl.DataFrame) -> History:
    rows = table.inner(shown).select(VS, VE, *table.columns).iter_rows()
    return History(Event(vs, ve, Row(dict(zip(table.columns, values, strict=True)))) for vs, ve, *values in rows)
