"""A set of replicas in a folder: runs of one query that emit the same history, and their merge.

    FOLDER/copies/NAME        the output of replica NAME
    FOLDER/checkpoints/NAME   its checkpoint, and that of the merge
    FOLDER/control            the members and their progress

Replicas may run different plans of the query, at different levels of consistency, on different machines; each reads its
input independently. The merge follows whichever is ahead. A replica that fails continues with its checkpoint, or a new
one replaces it under another name.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import polars as pl

from cedr.arguments import as_chronon
from cedr.columnar.chunk import VS, assemble
from cedr.columnar.tally import VE
from cedr.plan import nodes
from cedr.plan.merge_policy import Policy
from cedr.plan.schema import check_columns
from cedr.replicas.control import MERGE, Control, DesiredState
from cedr.replicas.copies import (
    COPY,
    IDENTITY,
    JOIN,
    CopySink,
    check_unused,
    copies_in,
    copies_of,
    copy_folder,
    reached,
    write_over,
)
from cedr.runtime.spark.driver.streaming import RunningQuery, last_committed, start
from cedr.sinks.base import SinkTable, TableSink
from cedr.sinks.changelog_rows import Changelog
from cedr.sources.user_times import time_type
from cedr.storage.folder import Folder, checkpoint_folder
from cedr.storage.lock import Lock
from cedr.stream import Stream
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, MIN

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import SparkSession


class Replicas:
    """The replicas of a query in a folder, on a disk that all of them can access."""

    def __init__(self, folder: str | os.PathLike[str], query: Stream) -> None:
        self.place = os.path.abspath(os.path.expanduser(os.fspath(folder)))
        self.query = query
        self.copies = os.path.join(self.place, "copies")
        self.control = Control(os.path.join(self.place, "control"))
        self.control.make()
        os.makedirs(self.copies, exist_ok=True)
        self.control.agree_on(query.schema, "this query")

    def __repr__(self) -> str:
        return f"replicas in {self.place}: {', '.join(self.names()) or 'none yet'}"

    def names(self) -> list[str]:
        """All copies that ever existed."""
        return sorted(name for name in os.listdir(self.copies) if self._folder(name).has(IDENTITY))

    def checkpoint(self, name: str) -> str:
        return os.path.join(self.place, "checkpoints", name)

    def _folder(self, name: str) -> Folder:
        return copy_folder(self.copies, name)

    # --- running -----------------------------------------------------------------------------------------------------

    def start(
        self,
        spark: "SparkSession",
        data: Any,
        name: str,
        *,
        join: "int | datetime | None" = None,
        trigger: Mapping[str, Any] | None = None,
        close: bool = False,
        shards: int | None = None,
        late: str | None = None,
    ) -> RunningQuery:
        """Run one replica in this process; with the same name it continues where it stopped.

        join   the replica reads its input from some point on only, and its answer is complete for all events that end
               at this time or later
        """
        if name == MERGE:
            raise QueryError(f"replica {name!r}: this name is reserved for the merge; choose another")
        desired = self.control.desired_of(name)
        if desired is not None and desired.over:
            raise QueryError(f"replica {name!r} is over; start a new one under another name")
        sink = CopySink(self.copies, name, as_chronon(join, f"replica {name!r}, join"))
        return start(
            nodes.Level(self.query.plan),
            spark,
            data,
            sink=sink,
            checkpoint=self.checkpoint(name),
            trigger=trigger,
            close=close,
            shards=shards,
            late=late,
            feedback=self.control.folder.place,
        )

    def merged(self, policy: Policy | str = "first", algorithm: str = "R4") -> Stream:
        """The one history that all replicas emit."""
        return copies_of(self.query.schema).merge_by(
            COPY, join=JOIN, policy=policy, algorithm=algorithm, wrong="detach"
        )

    def start_merge(
        self,
        spark: "SparkSession",
        *,
        sink: TableSink | Changelog,
        policy: Policy | str = "first",
        trigger: Mapping[str, Any] | None = None,
        shards: int | None = None,
        late: str | None = None,
    ) -> RunningQuery:
        """Merge all replicas, including future ones, into a sink. At least one must have output."""
        if not any(name.endswith(".parquet") for copy in self.names() for name in self._folder(copy).names()):
            raise QueryError(f"no replica in {self.place} has any output yet; start one first")
        return start(
            nodes.Level(self.merged(policy).plan),
            spark,
            copies_in(self.copies),
            sink=sink,
            checkpoint=self.checkpoint(MERGE),
            trigger=trigger,
            shards=shards,
            late=late,
        )

    # --- copies -------------------------------------------------------------------------------------------------------

    def reached(self, name: str) -> int:
        """The time up to which the output of a replica is complete."""
        return reached(self._folder(name))[1]

    def retire(self, name: str) -> None:
        """Retire a replica. What it alone has emitted is retracted in time; its name cannot be used again."""
        retire(self.place, name)

    def _table(self, name: str) -> SinkTable:
        found = table_of(self._folder(name))
        if found is None:
            raise QueryError(f"there is no replica {name!r} in {self.place}; available: {', '.join(self.names())}")
        return found

    def seed(self, name: str, table: pl.DataFrame, until: "int | datetime") -> None:
        """A table of the answer as a copy: `vs`, `ve` and the payload, complete up to the time `until`.

        A replica that starts with a later input and a `join` of `until` or before continues from there.
        """
        check_columns(["vs", "ve", *self.query.schema], table.schema, f"seed({name!r})")
        end = as_chronon(until, f"seed({name!r}), until")
        assert end is not None
        sink = CopySink(self.copies, name)
        check_unused(sink)
        columns = dict(self.query.schema)
        sink.open(SinkTable(f"table {name}", columns, time_type(table.schema["vs"])))
        times = table.select(
            pl.col("vs").cast(pl.Int64).fill_null(MIN).alias(VS), pl.col("ve").cast(pl.Int64).fill_null(INF).alias(VE)
        )
        vs, ve = times[VS].to_numpy(), times[VE].to_numpy()
        sink.write("seed", assemble(vs, vs, ve, table.select(pl.col(n).cast(k) for n, k in columns.items()), end))
        sink.note(None, end)

    def jump_start(self, name: str, checkpoint_of: str) -> None:
        """Give a new replica the state of another one that does not run: it continues where that one stopped.

        Start it afterwards with the same input and plan. It is complete from the progress of the other on.
        """
        donor = CopySink(self.copies, checkpoint_of)
        donor.table = self._table(checkpoint_of)
        new = CopySink(self.copies, name)
        check_unused(new)
        folder = checkpoint_folder(self.checkpoint(checkpoint_of))
        lock = Lock(folder)
        try:
            shutil.copytree(self.checkpoint(checkpoint_of), self.checkpoint(name), ignore=not_copied)
            # Spark identifies a query by this id, and runs each only once at a time.
            Folder(self.checkpoint(name)).sub("spark").write_plain(
                "metadata", json.dumps({"id": str(uuid4())}).encode()
            )
            batch, cti = donor.reached()
        finally:
            lock.release()
        if last_committed(folder) is None:
            raise QueryError(f"replica {checkpoint_of!r} has not finished any batch; start {name!r} from the beginning")
        join = max(cti, self.control.feedback)
        new.join = None if join == MIN else join
        new.open(donor.table)
        tuples = donor.tally().table().filter(pl.col(VE) >= join)
        vs, ve = tuples[VS].to_numpy(), tuples[VE].to_numpy()
        new.write("000000000000-seed", assemble(vs, vs, ve, tuples.select(*donor.table.columns), cti))
        new.note(batch, cti)

    def status(self) -> pl.DataFrame:
        """One row per replica: its progress, from when on it is complete, whether it is over."""
        rows = []
        for name in self.names():
            batch, cti = reached(self._folder(name))
            stored = self._folder(name).find(IDENTITY)
            assert stored is not None
            desired = self.control.desired_of(name)
            over = desired is not None and desired.over
            rows.append((name, batch, None if cti == MIN else cti, json.loads(stored)["join"], over))
        kinds = {"name": pl.String, "batch": pl.Int64, "cti": pl.Int64, "join": pl.Int64, "over": pl.Boolean}
        return pl.DataFrame(rows, schema=kinds, orient="row")


def not_copied(where: str, names: list[str]) -> list[str]:
    """Files that belong to one checkpoint only."""
    return [name for name in names if name in ("lock", "metadata", ".metadata.crc")]


def table_of(folder: Folder) -> SinkTable | None:
    """The table of a copy, if there is one."""
    stored = folder.find(IDENTITY)
    return None if stored is None else SinkTable.from_json(json.loads(stored)["table"])


def retire(place: str, name: str) -> None:
    """See `Replicas.retire`. A replica without output has nothing to retract."""
    control = Control(os.path.join(place, "control"))
    desired, table = control.desired_of(name), table_of(copy_folder(os.path.join(place, "copies"), name))
    if desired is None and table is None:
        names = ", ".join(sorted(name for name in control.desired() if name != MERGE)) or "none"
        raise QueryError(f"there is no replica {name!r} in {place}; available: {names}")
    control.set_desired(replace(desired or DesiredState(name), over=True))
    if table is not None:
        write_over(os.path.join(place, "copies"), name, table)


def emitted_up_to(running: RunningQuery) -> int:
    """The progress of a query's answer after its last micro-batch, if that is committed; otherwise MIN."""
    metrics, done = running.metrics(), last_committed(running.folder)
    if not metrics.height or done is None or done < int(metrics["batch"].to_numpy().max()):
        return MIN
    last = metrics.filter(pl.col("stage") == running.job.last)
    ctis = last.filter(pl.col("step") == pl.col("step").max())["cti_out"].fill_null(MIN).to_numpy()
    return int(ctis.min()) if len(ctis) == len(running.job.cells(running.job.last)) else MIN
