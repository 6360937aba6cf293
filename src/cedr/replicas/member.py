"""The process of one member, a replica or the merge: `python -m cedr.replicas.member FOLDER NAME MASTER SUPERVISOR`.

It finds its job in the control store, runs it, reports its progress, and ends when requested, when its input ends, or
when the supervisor is gone. Its exit code determines whether the supervisor starts it again.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from cedr.replicas.control import MERGE, TRY_AGAIN, USER_ERROR, Control, MemberStatus, State
from cedr.replicas.job import job_at, made
from cedr.replicas.replicas import Replicas, emitted_up_to
from cedr.runtime.spark.driver.session import spark_session
from cedr.runtime.spark.driver.streaming import RunningQuery
from cedr.sinks.parquet_table import ParquetSink
from cedr.storage.lock import InUseError
from cedr.temporal.errors import CedrError, QueryError
from cedr.temporal.time import INF, MIN

IDLE = "Waiting for data to arrive"
"""Spark's status of a query that has read all available input."""
LOOK = 0.25
"""Seconds between polls of the control store."""
GRACE = 30.0
"""Seconds a query has to stop by itself after its supervisor has died."""


class ReplicaMember:
    def __init__(self, folder: str, name: str, master: str, supervisor: int | None = None) -> None:
        self.folder, self.name, self.master = folder, name, master
        self.control = Control(os.path.join(folder, "control"))
        self.supervisor = supervisor
        self.follows = False
        self.batch: int | None = None
        self.idle = False

    def run(self) -> None:
        desired = self.control.desired_of(self.name)
        if desired is None:
            raise QueryError(f"there is no member {self.name!r} in {self.folder}")
        self.report("starting", MIN)
        job = job_at(desired.job)
        log = os.path.join(self.folder, "logs", f"{self.name}.java")
        spark = spark_session(self.master, f"cedr {self.name}", log=log)
        replica = made(job, spark, self.name, desired.job)
        replicas = Replicas(self.folder, replica.query)
        if self.name == MERGE:
            sink = replica.sink or ParquetSink(os.path.join(self.folder, "merged"))
            running = replicas.start_merge(spark, sink=sink, policy=replica.policy, trigger=replica.merge_trigger)
            self.state = self.follow(running, lambda: emitted_up_to(running), ends=True)
        else:
            join = replica.join if desired.join is None else desired.join
            running = replicas.start(
                spark,
                replica.data,
                self.name,
                join=join,
                trigger=replica.trigger,
                close=replica.close,
                shards=replica.shards,
            )
            self.state = self.follow(running, lambda: replicas.reached(self.name))
        self.report(self.state, self.cti)
        spark.stop()

    def follow(self, running: RunningQuery, reached: Callable[[], int], ends: bool = False) -> State:
        """Until the query ends, or is requested to."""
        self.cti, last, self.follows = MIN, -1.0, True
        while running.is_active:
            self.cti = max(self.cti, reached())
            if time.monotonic() - last > 1:
                progress = running.progress
                self.batch = progress[-1].batchId if progress else self.batch
                self.idle = bool(progress) and running.spark_query.status["message"] == IDLE
                self.report("running", self.cti)
                last = time.monotonic()
            if self.name == MERGE:
                self.control.feed_back(self.cti)
            desired = self.control.desired_of(self.name)
            over = desired is not None and desired.over
            if over or self.control.stopping or self.orphaned or (ends and self.cti == INF):
                running.stop()
                self.cti = max(self.cti, reached())
                return "over" if over else "done" if self.cti == INF else "stopped"
            time.sleep(LOOK)
        running.await_termination()
        self.cti = max(self.cti, reached())
        return "done"

    @property
    def orphaned(self) -> bool:
        """Whether the supervisor has died: the operating system has given this process another parent."""
        return self.supervisor is not None and os.getppid() != self.supervisor

    def end_with_supervisor(self) -> None:
        """End all of this process's group, Java included, when the supervisor dies. A query that runs is given time to
        stop by itself; whatever comes before it, such as the start of Spark, is not waited for."""
        while not self.orphaned:
            time.sleep(LOOK)
        if self.follows:
            time.sleep(GRACE)
        os.killpg(os.getpgrp(), signal.SIGKILL)

    def report(self, state: State, cti: int, error: str = "") -> None:
        self.control.report(MemberStatus(self.name, state, os.getpid(), self.batch, cti, self.idle, error))


def main(folder: str, name: str, master: str, supervisor: int | None = None) -> int:
    """`supervisor` is the parent process, which made this one the leader of a group of its own."""
    member = ReplicaMember(folder, name, master, supervisor)
    if supervisor is not None:
        threading.Thread(target=member.end_with_supervisor, daemon=True).start()
    try:
        member.run()
    except CedrError as e:
        print(f"error: {e}", file=sys.stderr)
        member.report("failed", MIN, str(e))
        return TRY_AGAIN if isinstance(e, InUseError) else USER_ERROR
    return 0


if __name__ == "__main__":
    folder, name, master, supervisor = sys.argv[1:]
    sys.exit(main(folder, name, master, int(supervisor)))
