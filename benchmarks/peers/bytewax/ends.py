"""The two ends of a dataflow: rows of Parquet files in, one Parquet file for each process out."""

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition

PARTITIONS = 2
BATCH = 1_000
Row = tuple[Any, ...]


class Clock:
    """When this process read first."""

    first = float("inf")


class Files(FixedPartitionedSource[Row, None]):
    """The rows of a folder but the flush, in two partitions by key."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder, self.clock = folder, clock

    def list_parts(self) -> list[str]:
        return [str(number) for number in range(PARTITIONS)]

    def build_part(self, step_id: str, for_part: str, resume_state: None) -> "Part":
        return Part(self.folder, int(for_part), self.clock)


class Part(StatefulSourcePartition[Row, None]):
    def __init__(self, folder: Path, number: int, clock: Clock) -> None:
        self.rows = self.read(sorted(folder.glob("*.parquet"))[:-1], number, clock)

    def read(self, files: list[Path], number: int, clock: Clock) -> Iterator[Row]:
        clock.first = min(clock.first, time.time())
        for path in files:
            table = pa.parquet.read_table(path)
            mine = table.filter(pc.equal(pc.bit_wise_and(table[1], PARTITIONS - 1), number))
            columns = [mine[0].cast(pa.int64()), *mine.columns[1:]]
            yield from zip(*(column.to_pylist() for column in columns), strict=True)

    def next_batch(self) -> list[Row]:
        batch = list(islice(self.rows, BATCH))
        if not batch:
            raise StopIteration
        return batch

    def snapshot(self) -> None:
        return None


class File(DynamicSink[Row]):
    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        self.path, self.columns = path, columns

    def build(self, step_id: str, worker_index: int, worker_count: int) -> "Written":
        return Written(self.path, self.columns)


class Written(StatelessSinkPartition[Row]):
    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        self.path, self.columns = path, columns
        self.rows: list[Row] = []

    def write_batch(self, items: list[Row]) -> None:
        self.rows += items

    def close(self) -> None:
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.columns)
        pa.parquet.write_table(pa.table(dict(zip(self.columns, columns, strict=True))), self.path)
