"""What a shard is rebuilt from: a snapshot and the packets of every micro-batch since.

    snapshot-00000041         the state of the shard after micro-batch 41
    part-00000041-<token>     large tables of this snapshot and of later ones
    log-00000042              the packets of micro-batch 42
    spilled-00000042-<token>  rows of a packet of micro-batch 42
    log-00000043              ...

Each of them is synced before something relies on it: the log and its rows before the batch is answered, a snapshot
and its parts before the log that it replaces is removed. docs/state.md describes the files byte by byte; reading them
runs no code but ours.

A batch is logged before it is answered; it is processed while its log reaches the disk. When it is processed again,
after a crash or in another process, the logged packets are used instead of the new ones, so the answer is the same
however the input was split this time.

Rows have to be stored here in any case. So large packets are spilled: the packer writes their rows here at once and
sends only the file name through Spark. They are written once and read once, and pass neither the shuffle nor a socket
(decision 10).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
import polars as pl

from cedr.columnar.chunk import FILE, OLD, VS
from cedr.runtime.spark.shard.packet import (
    LOG_LINE,
    Packet,
    from_blob,
    from_header,
    from_log,
    to_blob,
    to_header,
    to_log,
)
from cedr.storage.folder import Folder
from cedr.storage.plain import MalformedError, allowed
from cedr.storage.snapshots import OTHER_VERSION, SNAPSHOT, Snapshots, batch_of
from cedr.storage.snapshots import file_name as name
from cedr.storage.tables import verified_frame
from cedr.temporal.errors import DamagedFileError, StateError

SOURCE_STATUS = "source_status"
"""The folder of the sources' status in a checkpoint."""
KEPT_SNAPSHOTS = 2
SMALL_LOG = 64 << 20
"""A log of up to this many bytes never causes a snapshot."""
MANY_BATCHES = 64
STATE_VERSION = 4
"""Of the meaning of what operators save. The names and kinds of their fields are verified by themselves
(`cedr.columnar.state`); increase it when a field gets another meaning, so that older snapshots are refused by name."""
SPILLED = re.compile(r"spilled-\d+-[0-9a-f]+")
MANY_BYTES = 64 << 10
"""Minimum size of rows that are spilled on a local disk; smaller ones are sent in their packet."""
MANY_BYTES_REMOTE = 16 << 20
"""The same for remote storage, where a file costs two requests, and its rows are read back from there (decision 59)."""


@allowed
class RowsHeader(NamedTuple):
    """About the rows of a packet: where they are, if not in it, and their files, run by run."""

    spilled: "SpilledRows | None"
    files: tuple[str, ...]
    numbers: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()


@allowed
class SpilledRows(NamedTuple):
    """Where the rows of a packet are."""

    name: str
    size: int


def state_folder(job_folder: str, stage: int, shard: int) -> Folder:
    return Folder(job_folder).sub(f"state/{stage}/{shard}")


class SpillFile:
    """Writes rows of a micro-batch to the folder of their shard."""

    def __init__(self, job_folder: str, batch: int) -> None:
        self.job_folder, self.batch = job_folder, batch

    def put(self, packet: Packet, rows: pl.DataFrame) -> Packet:
        """The packet, with the rows or with the name of their file."""
        folder = state_folder(self.job_folder, packet.stage, packet.shard)
        if rows.estimated_size() < (MANY_BYTES if folder.local else MANY_BYTES_REMOTE):
            return packet._replace(blob=to_blob(rows))
        if (rows[OLD] == rows[VS]).all():
            rows = rows.drop(OLD)
        folder.make()
        file = f"{name('spilled', self.batch)}-{uuid4().hex}"
        folder.write_body(file, rows.write_ipc_stream)  # `log` syncs it
        spilled, files = SpilledRows(file, int(rows.estimated_size())), rows_header(packet)
        return packet._replace(header=to_header(files._replace(spilled=spilled) if files else spilled))


def rows_header(packet: Packet) -> RowsHeader | None:
    """The header of a packet of rows."""
    if packet.kind != "rows" or not packet.header:
        return None
    found = from_header(packet.header)
    header = RowsHeader(found, ()) if isinstance(found, SpilledRows) else found
    if not isinstance(header, RowsHeader) or not (header.spilled is None or is_spilled(header.spilled)):
        raise MalformedError("a packet of rows has another header")
    return header


def is_spilled(found: Any) -> bool:
    """Whether it names a file in this folder."""
    return isinstance(found, SpilledRows) and SPILLED.fullmatch(found.name) is not None and type(found.size) is int


def spilled_rows(packet: Packet) -> SpilledRows | None:
    header = rows_header(packet)
    return header.spilled if header else None


def with_files(packet: Packet, rows: pl.DataFrame, files: tuple[str, ...]) -> tuple[Packet, pl.DataFrame]:
    """The packet with the names of the files of its rows, and the rows as it stores them."""
    if not files:
        return packet, rows
    if FILE not in rows.columns:
        return packet._replace(header=to_header(RowsHeader(None, files))), rows
    runs = rows[FILE].rle().struct.unnest()
    used = runs["value"].drop_nulls().unique()
    numbers = runs["value"].replace_strict(used, pl.Series(range(len(used))), default=None).fill_null(-1)
    header = RowsHeader(None, tuple(files[n] for n in used), tuple(numbers), tuple(runs["len"]))
    return packet._replace(header=to_header(header)), rows.drop(FILE)


class StateStore:
    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.folder.make()
        self.snapshots = Snapshots(folder)
        self.log_bytes, self.log_batches, self.snapshot_bytes = 0, 0, 0

    @contextmanager
    def logging(
        self, batch: int, packets: list[Packet], first: Callable[[], None] = lambda: None
    ) -> Iterator[Callable[[], bool]]:
        """Log the packets of a batch while they are processed; `first` is done before. The function that it yields
        waits for the log. It returns False if other packets were logged first: those count instead of ours."""
        spilled = [found.name for p in packets if (found := spilled_rows(p))]
        content = to_log(packets)

        def sync() -> None:
            first()
            self.folder.sync_files(spilled)

        with self.folder.draft(name("log", batch), content, sync) as draft:

            def is_ours() -> bool:
                if ours := draft.publish():
                    self._counted(packets, len(content))
                return ours

            yield is_ours

    def logged_again(self, batch: int) -> list[Packet]:
        """The packets of a batch that is answered once more. Its log may be new, and who wrote it may be gone."""
        packets = self.logged(batch)
        self.folder.sync()
        return packets

    def logged(self, batch: int) -> list[Packet]:
        """The packets of a batch that was processed."""
        content = self.folder.find(file := name("log", batch))
        if content is None:
            raise self.folder.damaged(file, f"it is missing, and the state after micro-batch {batch} requires it")
        return self._counted(self._packets(file, content), len(content))

    def _counted(self, packets: list[Packet], size: int) -> list[Packet]:
        self.log_bytes += size + sum(spilled.size for p in packets if (spilled := spilled_rows(p)))
        self.log_batches += 1
        return packets

    def rows_of_files(self, packet: Packet) -> tuple[pl.DataFrame, tuple[str, ...]]:
        """The rows of a packet, with their files as in a chunk."""
        rows, header = self.rows(packet), rows_header(packet)
        if header is None or not header.lengths:
            return rows, header.files if header else ()
        numbers = pl.Series(FILE, np.repeat(header.numbers, header.lengths), dtype=pl.Int32)
        return rows.with_columns(numbers.set(numbers < 0, None)), header.files

    def rows(self, packet: Packet) -> pl.DataFrame:
        """The rows of a packet, in it or spilled."""
        if (spilled := spilled_rows(packet)) is None:
            return from_blob(packet.blob)
        try:
            rows = self.folder.read_body(spilled.name, lambda file: verified_frame(file.read()))
        except MalformedError as e:
            raise self.folder.damaged(spilled.name, str(e)) from None
        except FileNotFoundError:
            what = f"it is missing, and the log requires its {packet.rows} rows"
            raise self.folder.damaged(spilled.name, what) from None
        if OLD in rows.columns:
            return rows
        return rows.select(VS, pl.col(VS).alias(OLD), pl.exclude(VS))

    def has(self, batch: int) -> bool:
        """Whether the batch is logged; then all batches after it are, up to the newest."""
        return self.folder.has(name("log", batch))

    def newest_snapshot(self, before: int) -> tuple[int, Any] | None:
        """The newest snapshot after a batch lower than `before`."""
        batches = [b for b in self.snapshots.batches() if b < before]
        if not batches:
            return None
        manifest = self.snapshots.manifest(batches[-1])
        if manifest.json.get("state") != STATE_VERSION:
            raise self.folder.damaged(manifest.name, OTHER_VERSION)
        tree = self.snapshots.read(manifest)
        self.log_bytes, self.log_batches, self.snapshot_bytes = 0, 0, sum(p.size for p in manifest.places)
        return batches[-1], tree

    def unreadable(self, batch: int, why: Exception) -> DamagedFileError:
        """The error about a snapshot that is not one of this query and version, although it is intact."""
        if isinstance(why, StateError):
            return self.folder.damaged(name(SNAPSHOT, batch), f"{OTHER_VERSION}: {why}")
        return self.folder.damaged(name(SNAPSHOT, batch), f"it does not fit this query ({type(why).__name__}: {why})")

    def _packets(self, file: str, content: bytes) -> list[Packet]:
        if not content.startswith(LOG_LINE):
            raise self.folder.damaged(file, OTHER_VERSION)
        try:
            packets = from_log(content)
            for packet in packets:
                rows_header(packet)
        except MalformedError as e:
            raise self.folder.damaged(file, str(e)) from None
        return packets

    @property
    def due(self) -> bool:
        """Whether the log is as large as the snapshot that would replace it: so snapshots cost no more than logging,
        however large the state."""
        large = self.log_bytes > max(SMALL_LOG, self.snapshot_bytes)
        return large or self.log_batches >= MANY_BATCHES

    def snapshot(
        self, batch: int, state: Any, operators: Sequence[Any] = (), afresh: Callable[[], Any] | None = None
    ) -> None:
        """`operators` describes them, for people and for later versions. `afresh`: see `Snapshots.write`."""
        more = {"state": STATE_VERSION, "operators": list(operators)}
        written = self.snapshots.write(batch, state, afresh, **more)
        self.log_bytes, self.log_batches, self.snapshot_bytes = 0, 0, written
        self._forget()

    def _forget(self) -> None:
        snapshots = self.snapshots.batches()
        if len(snapshots) < KEPT_SNAPSHOTS:
            return
        oldest = snapshots[-KEPT_SNAPSHOTS]
        old = [n for n in self.folder.names() if n.startswith(("log-", "spilled-")) and batch_of(n) <= oldest]
        self.folder.remove(old)
        self.snapshots.forget_before(oldest)
