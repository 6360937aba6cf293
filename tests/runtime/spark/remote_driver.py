"""A driver in a process of its own, whose checkpoint and table are in a bucket: sums by window over files.

    python -m runtime.spark.remote_driver '{"bucket": ..., "files": ..., "spark": {...}, "once": true}'

It prints a line of JSON for each step, so that a test can follow it: "ready", then "done" with the table, or "error".
"""

import json
import sys
import time
from typing import Any

import cedr
from cedr.temporal import CedrError


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def query() -> Any:
    readings = cedr.source("readings", {"k": int, "v": int}, vs="ts", delay=20)
    return readings.tumbling(10).group_by("k").agg(n=cedr.count(), v=cedr.sum("v"))


def main(bucket: str, files: str, spark: dict[str, str], once: bool = True, **more: Any) -> None:
    session = cedr.spark_session("local[2]", "remote", log=more.get("log"), **spark)
    running = query().start(
        session,
        cedr.files(files, max_files=1),
        sink=cedr.sinks.parquet(f"{bucket}/table"),
        checkpoint=f"{bucket}/checkpoint",
        shards=more.get("shards", 2),
        trigger={"availableNow": True} if once else {"processingTime": "0 seconds"},
        close=once,
    )
    say(step="ready", at=time.time())
    running.await_termination()
    say(step="done", rows=running.table().rows())


if __name__ == "__main__":
    try:
        main(**json.loads(sys.argv[1]))
    except CedrError as e:
        say(step="error", kind=type(e).__name__, text=str(e))
        sys.exit(1)
