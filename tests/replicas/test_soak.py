"""`cedr replicas` as people use it: processes that are killed, a cutover, one answer.

The benchmark `./cedr bench soak` does the same for minutes with 50 kills.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from replicated.trial import JOBS, Load, Trial, alive

from cedr.replicas.control import Control, DesiredState


def cedr(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "cedr", "replicas", *map(str, arguments)], capture_output=True, text=True, timeout=600
    )


def test_members_are_killed_and_a_new_version_takes_over(tmp_path):
    """Killed are a replica, then the merge, and then all of the old version but one while the new one warms up."""
    trial = Trial(tmp_path, Load(files=16, rows=60, pace=0.5), replicas=2)
    try:
        kill(trial, "v1-1")
        kill(trial, "merge")
        cutover = trial.command("cutover", str(trial.set), f"{JOBS}:version_two", "-n", "1")
        trial.wait(lambda: "v2-1" in trial.control.desired())
        kill(trial, "v1-2")
        trial.wait(lambda: cutover.poll() is not None)
        assert cutover.returncode == 0, trial.logs()
        trial.finish.set()
        trial.wait(lambda: trial.process.poll() is not None)
        assert trial.process.returncode == 0, trial.logs()
        assert trial.answer().equals(trial.load.expected())
        assert trial.late() == 0
        found = json.loads(cedr("status", trial.set, "--json").stdout)
        assert {row["name"]: row["desired"] for row in found} == {
            "merge": "run",
            "v1-1": "over",
            "v1-2": "over",
            "v2-1": "run",
        }
        assert not [s for s in trial.control.status().values() if alive(s.process, s.name)]
        again = cedr("status", trial.set)
        assert "emitted up to" in again.stdout
    finally:
        trial.end()


def kill(trial, name):
    """When it runs."""

    def runs():
        status = trial.control.status().get(name)
        return status is not None and status.state == "running" and alive(status.process, name)

    trial.wait(runs)
    os.kill(trial.control.status()[name].process, signal.SIGKILL)


MISTAKES = {
    "no function": (["run", "jobs.py", "here"], "write file.py:function or module:function"),
    "no file": (["run", "nowhere.py:job", "here"], "there is no file 'nowhere.py'"),
    "no such name": (["run", f"{JOBS}:third", "here"], "has no function 'third'"),
    "no module": (["run", "no_such_module:job", "here"], "No module named 'no_such_module'"),
    "no replicas": (["status", "here"], "there are no replicas in 'here'; start some with: cedr replicas run JOB here"),
    "nothing to stop": (["stop", "here"], "there are no replicas in 'here'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_end_with_one_message(mistake, tmp_path):
    arguments, message = MISTAKES[mistake]
    done = subprocess.run(
        [sys.executable, "-m", "cedr", "replicas", *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_job_that_cannot_run_is_given_up_with_its_error(tmp_path):
    (tmp_path / "wrong.py").write_text("def job(spark, name):\n    return 3\n")
    done = subprocess.run(
        [sys.executable, "-m", "cedr", "replicas", "run", f"{tmp_path}/wrong.py:job", str(tmp_path / "set"), "-n", "1"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 1
    assert "v1-1: failed for good. job" in done.stdout
    assert "returns a int; it must return cedr.Replica(query, data)" in done.stdout


def test_a_member_ends_with_its_supervisor(tmp_path):
    """Even if it has not come far enough to run a query: here its job is never loaded completely."""
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(600)\n")
    control = Control(str(tmp_path / "set" / "control"))
    control.make()
    control.set_desired(DesiredState("v1-1", f"{tmp_path}/slow.py:job"))
    (tmp_path / "set" / "logs").mkdir()
    run = f"from cedr.replicas.supervisor import Supervisor; Supervisor({str(tmp_path / 'set')!r}).run()"
    supervisor = subprocess.Popen([sys.executable, "-c", run], stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: "v1-1" in control.status())
        member = control.status()["v1-1"].process
        assert alive(member, "v1-1")
    finally:
        supervisor.kill()
        supervisor.wait()
    try:
        wait_for(lambda: not alive(member, "v1-1"))
    finally:
        if alive(member, "v1-1"):
            os.killpg(member, signal.SIGKILL)


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
