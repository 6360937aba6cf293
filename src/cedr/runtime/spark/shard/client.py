"""Calls the process of a shard, and starts it if it does not run.

The processes of an executor share a private folder. It contains their sockets, the secret with which tasks and
processes authenticate each other, and the jobs they work on: a job contains user functions and so has to be unpickled,
which is done only with files of this folder, never with data from a socket (decision 28).
"""

import contextlib
import fcntl
import hashlib
import os
import secrets
import subprocess
import sys
import time
from functools import lru_cache
from pathlib import Path

import cedr
from cedr.runtime.spark.driver.environment import ENVIRONMENT
from cedr.runtime.spark.driver.job import PackedJob, leave_job
from cedr.runtime.spark.shard.errors import task_error
from cedr.runtime.spark.shard.packet import Packet, from_parts, to_parts
from cedr.runtime.spark.shard.shard import Answer, ShardMetrics
from cedr.runtime.spark.shard.wire import Wire, connect
from cedr.storage.private import (
    PREFIX,
    FolderError,
    is_private,
    make_private,
    note_owner,
    remove_left_over,
    secret_of,
    temporary,
)
from cedr.storage.processes import is_java
from cedr.temporal.errors import CedrError

ATTEMPTS = 4
"""One of them may end with the request for the job."""
START_SECONDS = 120.0


def request_answer(
    job: PackedJob, stage: int, shard: int, batch: int, packets: list[Packet], process: int | None = None
) -> Answer:
    """The answer of a shard, or of a cell, to a micro-batch. If its process is lost meanwhile, the next one rebuilds
    the shard. `process`: the number of the process, if it is another."""
    number = shard if process is None else process
    executor = executor_process()
    place = process_folder(job.application, executor)
    small, parts = to_parts(packets)
    request = ["work", job.run, job.digest, stage, shard, batch, small]
    for _ in range(ATTEMPTS):
        with contextlib.suppress(EOFError, ConnectionError), connect_to_shard(place, number, executor) as wire:
            wire.send(request, parts)
            (kind, *rest), blobs = wire.receive()
            if kind != "job?":
                break
            leave_job(place, job)
    else:
        raise CedrError(
            f"the process of shard {number} was lost repeatedly in stage {stage} of micro-batch {batch}; if "
            f"memory ran out, use more shards or larger machines. See its log: {place}/log-{number}"
        )
    if kind == "error":
        raise task_error(*rest)
    metrics, small = rest
    return Answer(from_parts(small, blobs[1:]), blobs[0], ShardMetrics(*metrics))


def announce_query_end(application: str, run: str) -> None:
    """Notify the processes on this machine that a query has ended; those elsewhere time out."""
    for place in temporary().glob(process_folder(application, "*").name):
        if not is_private(place):
            continue
        for address in place.glob("[0-9]*"):
            with contextlib.suppress(EOFError, OSError, FolderError):
                if address.is_socket() and (wire := connect(address, secret_of(place))):
                    with wire:
                        wire.send(["forget", run])
                        wire.receive()


def executor_process() -> int:
    """The process whose lifetime shard processes share: the daemon that made this worker, which lives as long as the
    executor. An orphaned worker belongs to process 1 or another reaper; then its shards live with the worker itself."""
    parent = os.getppid()
    return parent if parent == os.getpgrp() or is_java(parent) else os.getpid()


@lru_cache
def unguessable_name(application: str) -> str:
    """A name for Spark's application that is the same in all of this driver and cannot be guessed, so that nobody can
    create a folder of that name beforehand."""
    return f"{application}-{secrets.token_hex(8)}"


def process_folder(application: str, executor: int | str) -> Path:
    """The folder of the processes of an executor."""
    short = hashlib.blake2b(application.encode(), digest_size=6).hexdigest()
    return temporary() / f"{PREFIX}{os.getuid()}-{short}-{executor}"


children: list["subprocess.Popen[bytes]"] = []
"""The processes that this one has started, kept so that they are reaped when they end."""
secrets_of: dict[Path, bytes] = {}
"""The secrets of checked folders. A process there must prove that it has the secret, so one check is enough."""


def connect_to_shard(place: Path, shard: int, executor: int) -> Wire:
    address = place / str(shard)
    if place in secrets_of and (wire := connect(address, secrets_of[place])) is not None:
        return wire
    make_private(place)
    secret = secrets_of[place] = secret_of(place)
    with open(place / f"lock-{shard}", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return connect(address, secret) or start_process(address, secret, executor)


def start_process(address: Path, secret: bytes, executor: int) -> Wire:
    """A connection to a new process, which finds the secret next to its address."""
    remove_left_over()
    note_owner(address.parent, executor)
    address.unlink(missing_ok=True)
    paths = [str(Path(cedr.__file__).parent.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    log = address.with_name(f"log-{address.name}")
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "cedr.runtime.spark.shard.server", str(address), str(executor)],
            env={**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(p for p in paths if p)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    children[:] = [process, *(child for child in children if child.poll() is None)]
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if (wire := connect(address, secret)) is not None:
            return wire
        if process.poll() is not None:
            raise RuntimeError(f"the process of a shard ended at once: {log.read_text()[-2000:]}")
        time.sleep(0.02)
    raise RuntimeError(f"the process of a shard did not start within {START_SECONDS:.0f} s; see {log}")
