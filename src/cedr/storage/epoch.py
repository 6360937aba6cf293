"""One driver at a time on a remote checkpoint: the newest.

A store has no locks that end with their holder. So each driver takes a number, one higher than any before, by creating
a file that did not exist:

    drivers/000000000001    {"process": "process 811 on node3", ...}
    drivers/000000000002

The files stay, so a driver is the newest as long as the next file does not exist, which is one request. A driver that
is not stops with an error.

Contract: tasks, the planner of files, and the driver check before they write what others rely on: an entry of the file
log, a shard's log, a snapshot, the commit of a table. A check and the write after it are not one step; it is enough
nevertheless:

- A shard checks after Spark has noted the offsets of its micro-batch. If there was no newer driver then, one that comes
  later finds these offsets, so for both the micro-batch has the same rows, and either may have written the log.
- Entries of the file log, logs, and manifests of tables are created, never replaced: the first counts, and the other
  driver uses it or stops.
"""

import json
import os
import socket
from dataclasses import dataclass

from cedr.storage.folder import Folder
from cedr.temporal.errors import QueryError

DRIVERS = "drivers"


class ReplacedError(QueryError):
    """A driver whose checkpoint belongs to a newer one by now."""


@dataclass(frozen=True)
class Epoch:
    """The number of a driver on a checkpoint; `place` is our part of it."""

    place: str
    number: int

    @property
    def folder(self) -> Folder:
        return Folder(self.place).sub(DRIVERS)

    def check(self) -> None:
        """Raise if there is a newer driver."""
        if self.folder.has(file_name(self.number + 1)):
            raise ReplacedError(
                f"the checkpoint {self.place} was taken over by another driver ({self._successor()}); this one stops. "
                "Use a separate checkpoint for every query, and end a driver before you start its successor"
            )

    def _successor(self) -> str:
        return str(json.loads(self.folder.read(file_name(self.number + 1)))["process"])


def take_over(folder: Folder, run: str) -> Epoch | None:
    """From now on the driver of this run is the newest of a remote checkpoint. Local ones have a lock (`lock`)."""
    if folder.local:
        return None
    drivers = folder.sub(DRIVERS)
    drivers.make()
    ours = json.dumps({"process": f"process {os.getpid()} on {socket.gethostname()}", "run": run}).encode()
    number = max(map(int, drivers.names()), default=0) + 1
    while drivers.write_once(file_name(number), ours) != ours:
        number += 1
    return Epoch(folder.place, number)


def file_name(number: int) -> str:
    return f"{number:012d}"
