"""A side of the Spark benchmark is watched with all its processes, and none outlives it."""

import os
import sys
import textwrap
import time
from pathlib import Path

import pytest
from peers import processes
from peers.processes import SideFailedError, marked, watch


def run(tmp_path, code, limit=600.0):
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return watch(command, dict(os.environ), limit, tmp_path)


def ends(pid):
    """A process that was ended needs a moment, and stays in the list until its parent takes note."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            state = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_memory_is_that_of_all_processes_even_detached_ones(tmp_path, monkeypatch):
    """The program ends when both of its processes were looked at after they had come to hold their memory."""
    measure, large, seen = processes.memory, set(), tmp_path / "seen"

    def memory(pid):
        if (found := measure(pid)) > 100 * 2**20:
            large.add(pid)
            if len(large) == 2:
                seen.touch()
        return found

    monkeypatch.setattr(processes, "memory", memory)
    code = f"""
        import json, os, subprocess, sys, time
        hold = "import time; held = bytearray(b'x') * (100 * 2**20); print(1, flush=True); time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE, start_new_session=True)
        child.stdout.readline()
        held = bytearray(b"x") * (100 * 2**20)
        while not os.path.exists({str(seen)!r}):
            time.sleep(0.05)
        print("not this line")
        print(json.dumps({{"child": child.pid}}))
    """
    watched = run(tmp_path, code)
    assert 200 < watched.peak < 400
    assert ends(watched.result["child"])


def test_a_side_that_takes_too_long_is_ended(tmp_path):
    with pytest.raises(SideFailedError, match="after 1 s it was ended"):
        run(tmp_path, "import time; time.sleep(600)", limit=1)


def test_a_side_that_fails_reports_why(tmp_path):
    with pytest.raises(SideFailedError, match=r"it ended with 1(.|\n)*ValueError: no such key"):
        run(tmp_path, "raise ValueError('no such key')")


def test_nobody_else_is_marked():
    assert marked("no such mark") == []


def test_one_that_ends_well_but_too_late_has_failed(tmp_path):
    code = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); time.sleep(60)"
    with pytest.raises(SideFailedError, match="after 3 s it was ended"):
        run(tmp_path, code, limit=3)


@pytest.mark.parametrize("code", ["pass", "print('almost done')"])
def test_one_that_reports_nothing_has_failed(tmp_path, code):
    with pytest.raises(SideFailedError, match="it printed no report"):
        run(tmp_path, code)
