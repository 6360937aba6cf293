"""The process of a shard: keeps its engine between micro-batches, whichever Python worker calls.

Spark's Python workers are interchangeable, so a task would find state kept in one of them only by chance. This process
is started by the first worker that needs it, listens on a local socket, and ends with the Spark executor of that
worker. All queries of an application share the processes of an executor, one per shard number; a query that is inactive
for long is dropped. A process may be lost at any moment: the next one rebuilds its shards from their snapshots and
logs.
"""

import contextlib
import os
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from cedr.columnar.mapped import MEMORY, limit_of
from cedr.runtime.spark.driver.job import find_job, job_file
from cedr.runtime.spark.shard.errors import kind_of
from cedr.runtime.spark.shard.packet import from_parts, to_parts
from cedr.runtime.spark.shard.shard import Shard
from cedr.runtime.spark.shard.wire import Wire, accept, listen
from cedr.storage.plain import MalformedError
from cedr.storage.private import check_private, secret_of
from cedr.storage.processes import birth, is_java, parent_of
from cedr.temporal.errors import CedrError

IDLE_SECONDS = 900.0
"""A query that is inactive for this long is dropped; a process that is inactive for this long ends."""
LOOK_SECONDS = 0.5

Reply = tuple[list[Any], list[bytes]]


class ShardId(NamedTuple):
    run: str
    stage: int
    shard: int


class Server:
    """`home` is the folder of its socket, its secret and its jobs."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.shards: dict[ShardId, Shard] = {}
        self.digests: dict[str, str] = {}
        self.last_used: dict[ShardId, float] = {}
        self.busy, self.last = False, time.monotonic()

    def serve(self, wire: Wire) -> None:
        """One request: a micro-batch for a shard, or the end of a query."""
        self.busy = True
        try:
            self._serve(wire)
        finally:
            self.busy, self.last = False, time.monotonic()
        self._forget(place for place, used in self.last_used.items() if self.last - used > IDLE_SECONDS)

    def _serve(self, wire: Wire) -> None:
        with wire:
            match wire.receive():
                case ["work", str(run), str(digest), int(stage), int(shard), int(batch), list(small)], parts:
                    place = ShardId(run, stage, shard)
                    answer = self._work(place, digest, batch, small, parts)
                    try:
                        wire.send(*answer)
                    except CedrError as e:  # it is too large
                        wire.send(["error", kind_of(e), str(e)])
                case ["forget", str(run)], _:
                    self._last_snapshots(run)
                    self._forget(place for place in self.shards if place.run == run)
                    job_file(self.home, self.digests.pop(run, "")).unlink(missing_ok=True)
                    wire.send(["forgotten"])
                    return
                case _:
                    raise MalformedError("a message that is not a request")
        if place in self.shards:  # the answer has been sent, so deferred work can be done
            self.shards[place].tidy()

    def _work(self, place: ShardId, digest: str, batch: int, small: list[list[Any]], parts: list[bytes]) -> Reply:
        """["answer", ...], ["error", kind, text], or ["job?"] if the job is not in the folder yet."""
        self.last_used[place] = time.monotonic()
        try:
            if place not in self.shards:
                if (job := find_job(self.home, place.run, digest)) is None:
                    return ["job?"], []
                opened = job.open()
                MEMORY.allow(place.run, limit_of(opened.state_memory, opened.shards))
                self.shards[place] = Shard(opened, place.stage, place.shard)
                self.digests[place.run] = digest
            answer = self.shards[place].process(batch, from_parts(small, parts))
            small, parts = to_parts(answer.packets)
            return ["answer", answer.metrics, small], [answer.blob, *parts]
        except CedrError as e:
            return ["error", kind_of(e), str(e)], []
        except Exception:
            return ["error", "", traceback.format_exc()], []

    def _last_snapshots(self, run: str) -> None:
        """Of a query that ends. One that cannot be written is not missed: the log is there."""
        for place, shard in self.shards.items():
            if place.run == run:
                try:
                    shard.tidy(ending=True)
                except (CedrError, OSError):
                    traceback.print_exc()

    def _forget(self, places: Iterable[ShardId]) -> None:
        for place in list(places):
            self.shards.pop(place, None)
            self.last_used.pop(place, None)
        for run in MEMORY.limits.keys() - {place.run for place in self.shards}:
            MEMORY.withdraw(run)


def main(address: Path, executor: int) -> None:
    """`executor` is the process whose lifetime this one shares."""
    check_private(address.parent)
    server, secret = Server(address.parent), secret_of(address.parent)
    with listen(address) as listener:
        threading.Thread(target=watch, args=(server, executor, address), daemon=True).start()
        while True:
            # Tasks may fail at any time, and connections that do not authenticate are not served.
            with contextlib.suppress(OSError, EOFError, MalformedError):
                server.serve(accept(listener, secret))


def watch(server: Server, executor: int, address: Path) -> None:
    """End with the executor: with the daemon of its Python workers, and with its Java. Also end when tasks can no
    longer find this process, or none has called for long; the next process continues from its state."""
    watched = {process: birth(process) for process in living_with(executor)}
    own = identity(address)
    while identity(address) == own and (server.busy or time.monotonic() - server.last < IDLE_SECONDS):
        if any(born is None or birth(process) != born for process, born in watched.items()):
            shutil.rmtree(address.parent, ignore_errors=True)
            break
        time.sleep(LOOK_SECONDS)
    os._exit(0)


def living_with(executor: int) -> list[int]:
    """The given process of the executor, and the Java process that started it."""
    parent = parent_of(executor)
    return [executor] if parent is None or not is_java(parent) else [executor, parent]


def identity(address: Path) -> tuple[int, int] | None:
    """Identifies a socket."""
    try:
        found = os.lstat(address)
    except OSError:
        return None
    return found.st_dev, found.st_ino


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
