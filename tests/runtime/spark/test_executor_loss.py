"""Executors and processes of shards that are lost while a query runs: the query goes on and the answer is the same.

Each query runs as a driver of its own, because a process has one Spark only and this one needs a cluster.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from driven import EXECUTOR, SHARD, Size, command_line, driver, send

from cedr.runtime.spark.driver.session import folder_of_sockets
from cedr.runtime.spark.shard import server
from cedr.storage.private import make_private, note_owner, remove_left_over
from cedr.storage.processes import is_java, parent_of


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


def test_the_daemon_of_pythons_workers_is_lost(tmp_path):
    """Its shards end with it, though Java goes on, and so do those that workers without a daemon have asked for."""
    with driver(tmp_path, "local[2]", Size(files=8, rows=200)) as victim:
        victim.wait_for("done", 1)
        (daemon,) = [
            process for process in victim.processes("pyspark.daemon pyspark.worker") if is_java(parent_of(process))
        ]
        lost = shards_of(victim)
        send(daemon, signal.SIGKILL)
        victim.wait_until(lambda: not set(lost) & set(victim.processes()))
        assert any(is_java(process) for process in victim.processes())


def test_a_process_whose_executor_is_gone_ends_at_once(tmp_path):
    """As when the executor ends while the process starts; its folder goes, too."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        place = Path(folder, "s")
        make_private(place)
        gone = subprocess.Popen(["true"])
        gone.wait()
        done = subprocess.run([sys.executable, "-m", SHARD, place / "0", str(gone.pid)], timeout=300, check=False)
        assert done.returncode == 0
        assert not place.exists()


def test_folders_of_processes_that_were_killed_are_removed(monkeypatch):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        killed = subprocess.Popen(["sleep", "100"])
        names = {
            "killed": killed.pid,
            "lives": os.getpid(),
            "open": killed.pid,
            "elsewhere": killed.pid,
            "unknown": None,
        }
        for name, process in names.items():
            make_private(place := Path(folder, f"cedr-{name}"))
            if process is not None:
                note_owner(place, process)
        Path(folder, "cedr-open").chmod(0o755)  # may be somebody else's
        note = Path(folder, "cedr-elsewhere", "owner")
        note.write_text(note.read_text().replace("pid:", "other:"))  # of another container
        remove_left_over()
        assert Path(folder, "cedr-killed").exists()
        killed.kill()
        killed.wait()
        folder_of_sockets()
        left = {place.name.removeprefix("cedr-") for place in Path(folder).iterdir()}
        assert left >= names.keys() - {"killed"}
        assert "killed" not in left


def test_a_process_ends_when_nobody_asks_it(monkeypatch, tmp_path):
    """It ends neither while it works, nor before."""
    ended = []
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(server.os, "_exit", ended.append)
    (tmp_path / "0").touch()
    idle = server.Server(tmp_path)
    idle.busy = True
    watching = threading.Thread(target=server.watch, args=(idle, os.getpid(), tmp_path / "0"))
    watching.start()
    watching.join(0.3)
    assert ended == []
    idle.busy = False
    watching.join()
    assert ended == [0]
    assert (tmp_path / "0").exists()


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
