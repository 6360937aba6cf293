"""Runs the job with two replicas, kills one of them while it works, and shows that the answer is whole all the same."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cedr

HERE = Path(__file__).parent


def replicas(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "cedr", "replicas", *arguments]


def process_of(name: str, folder: str) -> int | None:
    """The process of a replica once it runs."""
    status = subprocess.run(replicas("status", folder, "--json"), capture_output=True, text=True, check=False)
    known = json.loads(status.stdout) if status.returncode == 0 else []
    return next((row["process"] for row in known if row["name"] == name and row["state"] == "running"), None)


def main() -> None:
    folder = tempfile.mkdtemp()
    command = replicas("run", f"{HERE / 'job.py'}:job", folder, "--replicas", "2", "--master", "local[1]")
    with (Path(folder) / "log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        while (victim := process_of("v1-1", folder)) is None:
            time.sleep(0.2)
        os.kill(victim, signal.SIGKILL)
        print("v1-1 was killed")
        running.wait(timeout=300)
    finally:
        if running.poll() is None:
            running.terminate()
    print(f"the others ended with exit code {running.returncode}")
    for vs, _, machine, load, n in cedr.sinks.read_parquet(f"{folder}/merged").iter_rows():
        print(f"{vs:%H:%M} {machine}: {load} at most, {n} reports")


if __name__ == "__main__":
    main()
