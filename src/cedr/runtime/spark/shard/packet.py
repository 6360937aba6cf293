"""Packets: the messages between the tasks of a micro-batch, one Spark row each.

rows       chunk rows for a shard, as Arrow IPC, sent through an exchange
progress   the progress reports of a part of a source; for every shard of each stage the source leads to
cti        the progress of a shard of an earlier stage in an exchange, and its new promises; for every shard
highest    the highest times among the rows that some task sent through an exchange, to any shard; for every shard
late       rows of a source that could not be used
close      the end of a source
feedback   the time before which the merge no longer needs the answer; for the last stage
answer     the output of the last stage: changes for a sink

`origin` is the task or shard that made the packet, `seq` the round in which it is processed: all packets of one round
before any of the next. The order of packets carries no information; they are sorted before use.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from cedr.columnar.promises import Promises
from cedr.sources.progress import ProgressReport
from cedr.storage.plain import FORMAT, MalformedError, allowed, from_bytes, to_bytes
from cedr.storage.tables import only_batch, verified_frame

BATCH_ID = "streaming.sql.batchId"
"""The property with which Spark passes the micro-batch to a task."""
SPARK_SCHEMA = (
    "stage int, shard int, kind string, exchange int, origin int, seq int, header binary, blob binary, rows bigint"
)
ARROW_SCHEMA = pa.schema(
    [
        ("stage", pa.int32()),
        ("shard", pa.int32()),
        ("kind", pa.string()),
        ("exchange", pa.int32()),
        ("origin", pa.int32()),
        ("seq", pa.int32()),
        ("header", pa.binary()),
        ("blob", pa.binary()),
        ("rows", pa.int64()),
    ]
)
LOG_SCHEMA = pa.schema([f.with_type(pa.large_binary()) if f.type == pa.binary() else f for f in ARROW_SCHEMA])
LOG_LINE = b'{"cedr":"log","format":1}\n'
"""The first line of a log. Increase the number when `LOG_SCHEMA` changes."""


@allowed
class Highest(NamedTuple):
    """The highest sync time and start among some rows."""

    sync: int
    start: int


HEADERS: dict[str, Callable[[Any], bool]] = {
    "progress": lambda found: (
        isinstance(found, tuple)
        and list(map(type, found)) == [str, list]
        and all(isinstance(report, ProgressReport) for report in found[1])
    ),
    "cti": lambda found: isinstance(found, tuple) and list(map(type, found)) == [int, Promises],
    "highest": lambda found: isinstance(found, Highest) and all(type(time) is int for time in found),
    "close": lambda found: isinstance(found, str),
    "feedback": lambda found: type(found) is int,
}
"""What the headers of packets in a log are, by kind."""
PACKET_KINDS = {"rows", "progress", "cti", "highest", "late", "close", "feedback", "answer"}


class Packet(NamedTuple):
    stage: int
    shard: int
    kind: str
    exchange: int = -1
    origin: int = 0
    seq: int = 0
    header: bytes = b""
    blob: bytes = b""
    rows: int = 0

    @property
    def place(self) -> tuple[int, int, int, str]:
        """The sort key of packets."""
        return (self.seq, self.exchange, self.origin, self.kind)


def to_batches(packets: Iterable[Packet]) -> Iterator[pa.RecordBatch]:
    """One batch per packet: blobs are large."""
    for packet in packets:
        yield pa.RecordBatch.from_pylist([packet._asdict()], schema=ARROW_SCHEMA)


def from_batch(batch: pa.RecordBatch) -> Iterator[Packet]:
    columns = [batch.column(name).to_pylist() for name in Packet._fields]
    yield from map(Packet._make, zip(*columns, strict=True))


def to_blob(rows: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    rows.write_ipc_stream(buffer)
    return buffer.getvalue()


def from_blob(blob: bytes) -> pl.DataFrame:
    return pl.read_ipc_stream(io.BytesIO(blob))


def to_header(value: Any) -> bytes:
    return to_bytes(value)


def from_header(header: bytes) -> Any:
    return from_bytes(header)


def to_parts(packets: Sequence[Packet]) -> tuple[list[list[Any]], list[bytes]]:
    """Packets for a socket: small fields as columns, then header and blob of each."""
    small = [list(column) for column in zip(*((*p[:6], p.rows) for p in packets), strict=True)]
    return small, [part for p in packets for part in (p.header, p.blob)]


def from_parts(small: Sequence[Sequence[Any]], parts: Sequence[bytes]) -> list[Packet]:
    """Packets from a socket. Their headers are checked at once: logs of earlier versions have pickled ones."""
    headers, blobs = parts[::2], parts[1::2]
    if not all(header.startswith(FORMAT) for header in headers if header):
        raise MalformedError(
            "a packet has a header that is not a plain value; all machines need the same version of cedr"
        )
    rows = zip(*small, strict=True) if small else ()
    return [Packet._make((*p[:6], header, blob, p[6])) for p, header, blob in zip(rows, headers, blobs, strict=True)]


def to_log(packets: Sequence[Packet]) -> bytes:
    """Packets for a file: a line of JSON, then a table with one row per packet."""
    columns = [list(column) for column in zip(*packets, strict=True)] or [[] for _ in LOG_SCHEMA]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, LOG_SCHEMA, strict=True)]
    buffer = io.BytesIO(LOG_LINE)
    buffer.seek(len(LOG_LINE))
    with pa.ipc.new_stream(buffer, LOG_SCHEMA) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=LOG_SCHEMA))
    return buffer.getvalue()


def from_log(content: bytes) -> list[Packet]:
    """Packets from a file. All of it is verified, so that the packets are what the shard expects."""
    try:
        batch = only_batch(pa.py_buffer(content).slice(len(LOG_LINE)), LOG_SCHEMA)
        packets = list(from_batch(batch))
    except Exception as e:
        raise MalformedError(f"its packets cannot be read ({e})") from None
    for packet in packets:
        if None in packet or packet.kind not in PACKET_KINDS:
            raise MalformedError(f"a packet of kind {packet.kind!r} is not complete")
        if packet.header and not HEADERS.get(packet.kind, lambda _: True)(from_header(packet.header)):
            raise MalformedError(f"a packet of kind {packet.kind!r} has another header")
        if packet.blob and packet.kind != "answer":
            verified_frame(packet.blob)
    return packets
