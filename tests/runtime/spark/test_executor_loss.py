"""Executors and processes of shards that are lost while a query runs: the query goes on and the answer is the same.

Each query runs as a driver of its own, because a process has one Spark only and this one needs a cluster.
"""

import signal
import sys
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from crash import disagreement
from crashes.victim import EXECUTOR, SHARD, Victim, command_line, send
from crashes.workload import QUERIES, Size, tables


@contextmanager
def driver(folder, master, size):
    """A driver that runs; at the end of the block it has to come to its own end, with the right answer."""
    given = tables(QUERIES["sites"](), size)
    given.write(folder / "in")
    victim = Victim(folder, "sites", str(folder), "parquet", master)
    try:
        yield victim
        victim.finish()
        assert disagreement("sites", "parquet", given, folder) is None
        assert victim.left() == []
    finally:
        victim.end()


def test_an_executor_is_lost_in_the_middle_of_a_batch(tmp_path):
    with driver(tmp_path, "local-cluster[2,1,1024]", Size(files=6, rows=200)) as victim:
        victim.wait_for("first stage", 2)
        executors = victim.processes(EXECUTOR)
        assert len(executors) == 2
        send(executors[0], signal.SIGKILL)
        victim.wait_for("done", 4)
        assert executors[0] not in victim.processes()


def test_processes_of_shards_are_lost_between_batches(tmp_path):
    with driver(tmp_path, "local[2]", Size(files=5, rows=200)) as victim:
        victim.wait_for("done", 1)
        lost = shards_of(victim)
        send_all(lost, signal.SIGKILL)
        victim.wait_for("done", 3)
        assert not set(lost) & set(victim.processes())


def test_processes_of_shards_are_lost_in_the_middle_of_a_batch(tmp_path):
    """They are stopped when a batch is in the log; when a task waits for an answer, they are lost in its middle. If
    they had given their answers by then, the task that waits is one of the next batch."""
    with driver(tmp_path, "local[2]", Size(files=8, rows=4_000)) as victim:
        victim.wait_for("done", 0)
        shards = shards_of(victim)
        victim.wait_for("first stage", 1)
        send_all(shards, signal.SIGSTOP)
        victim.wait_until(lambda: any(map(is_asked, shards)) or victim.has_ended)
        assert not victim.has_ended
        send_all(shards, signal.SIGKILL)


def shards_of(victim):
    """The processes of the shards, of which each machine has one per shard."""
    shards = victim.processes(SHARD)
    assert len(shards) == 2
    return shards


def send_all(pids, sign):
    for pid in pids:
        send(pid, sign)


def is_asked(pid):
    """Whether a task has connected to the process of a shard: then its socket is listed a second time."""
    address = command_line(pid).split()[3]
    return Path("/proc/net/unix").read_text().count(f" {address}\n") > 1
