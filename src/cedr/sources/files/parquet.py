"""Reads one Parquet file: its footer for planning, then some of its row groups."""

from collections.abc import Iterator

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from polars.exceptions import PolarsError

from cedr.plan.nodes.source import Source
from cedr.plan.schema import first_line
from cedr.sources.event_time import time_columns
from cedr.sources.files import clock
from cedr.sources.files.columns import ExpectedColumns, check_present, fitted
from cedr.sources.files.unreadable import ProblemError

ROWS_AT_ONCE = 500_000


def opened(path: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as e:
        raise ProblemError(f": this is not a complete Parquet file ({first_line(e)})") from None


def row_groups(path: str, expected: ExpectedColumns) -> tuple[int, ...]:
    """The number of rows of each row group, after checking that the columns exist."""
    with opened(path) as file:
        check_present(names := file.schema_arrow.names, expected.of(names))
        return tuple(file.metadata.row_group(i).num_rows for i in range(file.num_row_groups))


def clock_in(path: str, source: Source) -> str | None:
    try:
        file = opened(path)
    except ProblemError:
        return None
    with file:
        fields = [field for field in file.schema_arrow if field.name in time_columns(source, file.schema_arrow.names)]
    empty = pa.table([pa.nulls(0, field.type) for field in fields], [field.name for field in fields])
    return clock.of_columns(source, dict(pl.DataFrame(empty).schema))


def frames(path: str, first: int, end: int, columns: ExpectedColumns) -> Iterator[pl.DataFrame]:
    """The rows of row groups `first` to `end` (exclusive)."""
    if first == end:
        return
    with opened(path) as file:
        check_present(names := file.schema_arrow.names, expected := columns.of(names))
        batches = file.iter_batches(
            ROWS_AT_ONCE, row_groups=range(first, end), columns=list(expected), use_threads=False
        )
        while (batch := next_batch(batches)) is not None:
            yield fitted(pl.DataFrame(batch), expected)


def next_batch(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    try:
        return next(batches, None)
    except (pa.ArrowException, PolarsError, OSError) as e:
        raise ProblemError(f": its data is damaged ({first_line(e)})") from None
