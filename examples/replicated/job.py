"""The load of each machine, sixty seconds at a time: what each replica runs."""

from pathlib import Path

import cedr

DATA = Path(__file__).parent / "data"

reports = cedr.source("reports", {"machine": str, "load": int}, vs="at", delay="10s")
load = reports.tumbling("60s").group_by("machine").agg(load=cedr.max("load"), n=cedr.count())


def job(spark, name: str) -> cedr.Replica:
    """`name` is that of the replica; here all of them read the same files."""
    return cedr.Replica(load, cedr.files(DATA, max_files=1), trigger={"availableNow": True}, close=True)
