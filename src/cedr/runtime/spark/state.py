"""What a shard can be rebuilt from: a snapshot and the packets of every micro-batch since.

    snapshot-00000041   everything the shard knew after micro-batch 41
    log-00000042        the packets it got in micro-batch 42
    log-00000043        ...

A batch is logged before it is worked in. Whoever works it in again, after a crash or in another process, takes the
logged packets and not the ones at hand, so it comes to the same answer whatever way the input was split this time.
"""

import pickle
from typing import Any

from cedr.runtime.spark.folder import Folder
from cedr.runtime.spark.packet import Packet

KEPT_SNAPSHOTS = 2
SMALL_LOG = 16 << 20
"""So many bytes of log never call for a snapshot."""
MANY_BATCHES = 64


class StateStore:
    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.folder.make()
        self.log_bytes, self.log_batches, self.snapshot_bytes = 0, 0, 0

    def log(self, batch: int, packets: list[Packet]) -> list[Packet]:
        """The packets that count for this batch: those logged first."""
        content = pickle.dumps([tuple(p) for p in packets], protocol=5)
        there = self.folder.write_once(name("log", batch), content)
        self.log_bytes += len(there)
        self.log_batches += 1
        return packets if there is content else unpacked(there)

    def logged(self, batch: int) -> list[Packet] | None:
        content = self.folder.find(name("log", batch))
        if content is None:
            return None
        self.log_bytes += len(content)
        self.log_batches += 1
        return unpacked(content)

    def has(self, batch: int) -> bool:
        """Whether the batch is logged; then all batches after it are, up to the newest."""
        return self.folder.has(name("log", batch))

    def newest_snapshot(self, before: int) -> tuple[int, Any] | None:
        """The newest snapshot after a batch lower than `before`."""
        batches = [b for b in self._batches("snapshot") if b < before]
        if not batches:
            return None
        content = self.folder.read(name("snapshot", batches[-1]))
        self.log_bytes, self.log_batches, self.snapshot_bytes = 0, 0, len(content)
        return batches[-1], pickle.loads(content)

    @property
    def due(self) -> bool:
        """Whether the log has grown as large as the snapshot that would replace it: so snapshots cost no more than
        logging does, however large the state."""
        large = self.log_bytes > max(SMALL_LOG, self.snapshot_bytes)
        return large or self.log_batches >= MANY_BATCHES

    def snapshot(self, batch: int, state: Any) -> None:
        content = pickle.dumps(state, protocol=5)
        self.folder.write(name("snapshot", batch), content)
        self.log_bytes, self.log_batches, self.snapshot_bytes = 0, 0, len(content)
        self._forget()

    def _forget(self) -> None:
        snapshots = self._batches("snapshot")
        if len(snapshots) < KEPT_SNAPSHOTS:
            return
        oldest = snapshots[-KEPT_SNAPSHOTS]
        self.folder.remove([name("log", b) for b in self._batches("log") if b <= oldest])
        self.folder.remove([name("snapshot", b) for b in snapshots if b < oldest])

    def _batches(self, kind: str) -> list[int]:
        return [int(n.removeprefix(f"{kind}-")) for n in self.folder.names() if n.startswith(f"{kind}-")]


def name(kind: str, batch: int) -> str:
    return f"{kind}-{batch:012d}"


def unpacked(content: bytes) -> list[Packet]:
    return [Packet(*values) for values in pickle.loads(content)]
