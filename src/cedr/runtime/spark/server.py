"""The process of a shard: keeps its engine between micro-batches, whichever Python worker comes to ask.

Spark's Python workers are interchangeable, so state kept in one of them is found there only by chance. This process is
started by the first worker that needs it, listens on a socket of this machine, and ends with the Spark executor that
worker belongs to. All queries of an application share the processes of an executor, one per shard number; a query that
was not heard of for long is forgotten. A process may be lost at any moment: the next one rebuilds its shards from their
snapshots and logs.
"""

import contextlib
import os
import shutil
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any, NamedTuple

IDLE_SECONDS = 900.0


class Place(NamedTuple):
    run: str
    stage: int
    shard: int


class Server:
    def __init__(self) -> None:
        self.shards: dict[Place, Any] = {}
        self.asked: dict[Place, float] = {}

    def serve(self, connection: Connection) -> None:
        """One request: a micro-batch for a shard, or the run of a query that has ended."""
        match connection.recv():
            case ("work", job, stage, shard, batch, packets):
                place = Place(job.run, stage, shard)
                connection.send(self._work(place, job, batch, packets))
                connection.close()
                self._tidy(place)
            case ("forget", run):
                self._forget(place for place in self.shards if place.run == run)
                connection.send(("forgotten",))
        now = time.monotonic()
        self._forget(place for place, asked in self.asked.items() if now - asked > IDLE_SECONDS)

    def _work(self, place: Place, job: Any, batch: int, packets: list[Any]) -> tuple[Any, ...]:
        """("answer", ...) or ("error", kind, text)"""
        from cedr.runtime.spark.errors import kind_of
        from cedr.runtime.spark.shard import Shard
        from cedr.temporal.errors import CedrError

        self.asked[place] = time.monotonic()
        try:
            if place not in self.shards:
                self.shards[place] = Shard(job.open(), place.stage, place.shard)
            return "answer", self.shards[place].process(batch, packets)
        except CedrError as e:
            return "error", kind_of(e), str(e)
        except Exception:
            return "error", "", traceback.format_exc()

    def _tidy(self, place: Place) -> None:
        """What can wait until the answer is on its way."""
        if place in self.shards:
            self.shards[place].tidy()

    def _forget(self, places: Any) -> None:
        for place in list(places):
            self.shards.pop(place, None)
            self.asked.pop(place, None)


def main(address: str, secret: str, executor: int) -> None:
    """`executor` is the process we live and die with."""
    threading.Thread(target=watch, args=(executor, address), daemon=True).start()
    server = Server()
    with Listener(address, "AF_UNIX", backlog=64, authkey=bytes.fromhex(secret)) as listener:
        warm_up()
        while True:
            with contextlib.suppress(OSError, EOFError), listener.accept() as connection:  # callers may die any time
                server.serve(connection)


def warm_up() -> None:
    """Import what every query needs while the first caller is still packing its request."""
    from cedr.runtime.spark import shard  # noqa: F401


def watch(executor: int, address: str) -> None:
    born = birth(executor)
    while born is not None and birth(executor) == born:
        time.sleep(0.5)
    shutil.rmtree(os.path.dirname(address), ignore_errors=True)
    os._exit(0)


def birth(process: int) -> str | None:
    """When a process was started; None when it has ended, even if nobody has taken note of that yet. Its number alone
    may belong to another one by now."""
    try:
        state, *rest = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in "ZX" else rest[18]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
