"""One run of a workload on a cluster in one machine: `python -m clustered.driver MASTER WORKLOAD SHARDS DATA OUT`.

Prints, as JSON, what each micro-batch took and how many of its shards had moved, and the time of the processor that all
processes of the run used from the end of the warm-up to the last micro-batch: driver, Java of driver and executors,
Python workers and shards.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from peers.processes import MARK, marked
from peers.workloads import WORKLOADS

import cedr

WARM_UP = 8
"""Micro-batches that do not count."""
EXECUTOR_MEMORY = "700m"
TICK = os.sysconf("SC_CLK_TCK")


def main(master: str, name: str, shards: str, data: str, out: str) -> None:
    workload, folder = WORKLOADS[name], Path(out)
    spark = cedr.spark_session(master, spark__executor__memory=EXECUTOR_MEMORY)
    running = (
        workload.cedr_query()
        .with_consistency("middle")
        .start(
            spark,
            {stream: cedr.files(Path(data) / stream, max_files=1) for stream in workload.streams},
            sink=cedr.sinks.parquet(folder / "rows"),
            checkpoint=str(folder / "checkpoint"),
            shards=int(shards),
            trigger={"availableNow": True},
            close=workload.close,
        )
    )
    used = {}
    while running.is_active:
        if running.progress and (batch := running.progress[-1].batchId) >= WARM_UP - 1:
            used[batch] = processor_seconds()
        time.sleep(0.1)
    running.await_termination()
    print(json.dumps({"batches": batches(running.progress), "used": used}))
    spark.stop()


def batches(progress: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            "batch": p.batchId,
            "seconds": p.durationMs["triggerExecution"] / 1000,
            **{name: p.observedMetrics["cedr"][name] or 0 for name in ("rows_in", "replayed", "moved")},
        }
        for p in progress
        if "cedr" in p.observedMetrics
    ]


def processor_seconds() -> float:
    """Of all processes of this run, with those of their children that have ended."""
    return sum(map(seconds_of, marked(os.environ[MARK])))


def seconds_of(pid: int) -> float:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    return sum(map(int, stat.rpartition(")")[2].split()[11:15])) / TICK


if __name__ == "__main__":
    main(*sys.argv[1:])
