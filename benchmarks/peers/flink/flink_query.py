"""A query in Flink SQL, the streams it reads and the columns of its result. Times are microseconds."""

from dataclasses import dataclass

import pyarrow as pa

KINDS = {"BIGINT": pa.int64(), "DOUBLE": pa.float64(), "STRING": pa.string()}
MICROS = "1000000 * UNIX_TIMESTAMP(CAST({} AS STRING))"
"""Windows begin and end at whole seconds, in the time zone of the session, which is UTC."""
STARTS, ENDS = MICROS.format("window_start"), MICROS.format("window_end")


@dataclass(frozen=True)
class FlinkQuery:
    streams: tuple[str, ...]
    answer: str
    """The columns of the result."""
    query: str
    views: tuple[str, ...] = ()
    changes: bool = False
    """Whether the result is a stream of changes."""

    @property
    def kinds(self) -> dict[str, pa.DataType]:
        pairs = (column.split() for column in self.answer.split(", "))
        return {name.strip("`"): KINDS[kind] for name, kind in pairs}
