"""Asking the process of a shard, and starting it when nobody has."""

import contextlib
import fcntl
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Client, Connection
from pathlib import Path

import cedr
from cedr.runtime.spark.environment import ENVIRONMENT, temporary
from cedr.runtime.spark.errors import carried
from cedr.runtime.spark.job import PackedJob
from cedr.runtime.spark.packet import Packet
from cedr.runtime.spark.shard import Answer
from cedr.temporal.errors import CedrError

ATTEMPTS = 3
START_SECONDS = 120.0


def ask(job: PackedJob, stage: int, shard: int, batch: int, packets: list[Packet]) -> Answer:
    """The answer of a shard to a micro-batch. When its process is lost meanwhile, the next one rebuilds the shard."""
    executor = os.getppid()  # the daemon that made this worker; it lives as long as the executor does
    place = home(job.application, executor)
    for _ in range(ATTEMPTS):
        with contextlib.suppress(EOFError, ConnectionError), connected(place, shard, executor) as connection:
            connection.send(("work", job, stage, shard, batch, packets))
            kind, *rest = connection.recv()
            break
    else:
        raise CedrError(
            f"the process of shard {shard} was lost {ATTEMPTS} times in stage {stage} of micro-batch {batch}; if "
            f"memory ran out, use more shards or larger machines. Its last words, if any, are in {place}/log-{shard}"
        )
    if kind == "error":
        raise carried(*rest)
    (answer,) = rest
    assert isinstance(answer, Answer)
    return answer


def forget(application: str, run: str) -> None:
    """Tell the processes on this machine that a query has ended; those elsewhere find out after a while."""
    for place in temporary().glob(home(application, "*").name):
        for address in place.glob("[0-9]*"):
            if address.is_socket() and (connection := connect(address, secret_of(place))):
                with connection, contextlib.suppress(EOFError, OSError):
                    connection.send(("forget", run))
                    connection.recv()


def home(application: str, executor: int | str) -> Path:
    """Where the processes of an executor listen; nobody else may enter."""
    short = hashlib.blake2b(application.encode(), digest_size=6).hexdigest()
    return temporary() / f"cedr-{os.getuid()}-{short}-{executor}"


def secret_of(place: Path) -> bytes:
    return hashlib.blake2b(place.name.encode(), digest_size=16).digest()


@contextlib.contextmanager
def connected(place: Path, shard: int, executor: int) -> Iterator[Connection]:
    place.mkdir(mode=0o700, exist_ok=True)
    address, secret = place / str(shard), secret_of(place)
    connection = connect(address, secret)
    if connection is None:
        with open(place / f"lock-{shard}", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            connection = connect(address, secret) or started(address, secret, executor)
    with connection:
        yield connection


def connect(address: Path, secret: bytes) -> Connection | None:
    try:
        return Client(str(address), "AF_UNIX", authkey=secret)
    except (FileNotFoundError, ConnectionError, EOFError):
        return None


def started(address: Path, secret: bytes, executor: int) -> Connection:
    address.unlink(missing_ok=True)
    paths = [str(Path(cedr.__file__).parent.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    log = address.with_name(f"log-{address.name}")
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "cedr.runtime.spark.server", str(address), secret.hex(), str(executor)],
            env={**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(p for p in paths if p)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if (connection := connect(address, secret)) is not None:
            return connection
        if process.poll() is not None:
            raise RuntimeError(f"the process of a shard ended at once: {log.read_text()[-2000:]}")
        time.sleep(0.02)
    raise RuntimeError(f"the process of a shard did not start within {START_SECONDS:.0f} s; see {log}")
