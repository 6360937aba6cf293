"""The tasks of a query on Spark without Spark, so that crashes and retries can be drawn at random."""

from collections import defaultdict
from dataclasses import replace

import polars as pl

from cedr.columnar.tally import net_changes
from cedr.plan.changes import PlanChanges
from cedr.plan.nodes.level import Level
from cedr.plan.partitioning import staged
from cedr.runtime.spark.driver.job import SparkJob, description, record_of
from cedr.runtime.spark.driver.upgrading import Checkpoint, KeptPlan
from cedr.runtime.spark.reader.packer import Packer, closing
from cedr.runtime.spark.shard.cells import Layout
from cedr.runtime.spark.shard.packet import Packet, from_blob
from cedr.runtime.spark.shard.rescale import rescale
from cedr.runtime.spark.shard.shard import Shard
from cedr.runtime.spark.shard.state import SpillFile
from cedr.storage.folder import Folder
from cedr.temporal import Event, History, Row


class Cluster:
    """The tasks of micro-batches, run one after the other in this process."""

    def __init__(self, query, folder: str, shards: int) -> None:
        plan = staged(Level(query.plan))
        self.job = SparkJob(plan, shards, "run", "application", folder, f"{folder}/late", pl.Int64(), "changelog")
        self.shards: dict[tuple[int, int], Shard] = {}

    def packets(self, batch: int, parts_by_source) -> list[Packet]:
        made = []
        for source, parts_ in parts_by_source.items():
            for origin, part in enumerate(parts_):
                made += Packer(self.job, source, origin, SpillFile(self.job.folder, batch)).packets([part])
        return made

    def closing(self) -> list[Packet]:
        return [packet for source in self.job.plan.sources for packet in closing(self.job, source)]

    def run(self, batch: int, packets: list[Packet], crashes=frozenset()) -> pl.DataFrame:
        """The net change a micro-batch makes; shards in `crashes` lose their memory before they answer."""
        waiting = defaultdict(list)
        for packet in packets:
            waiting[packet.stage, packet.shard].append(packet)
        changes = []
        for stage in range(1, self.job.last + 1):
            for shard in [cell.number for cell in self.job.cells(stage)]:
                if (stage, shard) in crashes:
                    self.shards.pop((stage, shard), None)
                answer = self._shard(stage, shard).process(batch, waiting[stage, shard])
                self._shard(stage, shard).tidy()
                for packet in answer.packets:
                    waiting[packet.stage, packet.shard].append(packet)
                if stage == self.job.last:
                    changes.append(from_blob(answer.blob))
        return net_changes(pl.concat(changes), self.job.plan.schema)

    def rescale(self, shards: int, batch: int) -> None:
        """Go on with another number of shards after a micro-batch."""
        self.job = rescale(self.job, shards, batch)
        self.shards = {}

    def change(self, query, batch: int) -> PlanChanges:
        """Go on with another query after a micro-batch, as a start would; returns what that has found."""
        for shard in self.shards.values():
            shard.tidy(ending=True)
        folder = Folder(self.job.folder)
        kept = KeptPlan.read(folder)
        if kept is None:
            kept = KeptPlan(record_of(self.job.plan, description(self.job.plan, self.job.shards)))
            kept.write(folder)
        plan, layout = staged(Level(query.plan)), self.job.layout or Layout.first(self.job.shards, self.job.last)
        record = record_of(plan, description(plan, self.job.shards))
        last = None if batch < 0 else batch
        changed = Checkpoint(folder, layout, last, last).changed(kept, record)
        changed.plan.write(folder)
        again = KeptPlan.read(folder)
        assert again == changed.plan
        self.job, self.shards = replace(self.job, plan=plan, upgrade=again.upgrade), {}
        return changed.found

    def _shard(self, stage: int, shard: int) -> Shard:
        if (stage, shard) not in self.shards:
            self.shards[stage, shard] = Shard(self.job, stage, shard)
        return self.shards[stage, shard]


def history(counted: list[pl.DataFrame], schema) -> History:
    """The tuples that are left after net changes."""
    names = list(schema)
    sums = pl.concat(counted).group_by("_vs", "_ve", *names).agg(pl.col("_n").sum())
    assert (sums["_n"] >= 0).all()
    return History(
        Event(vs, ve, Row(dict(zip(names, values, strict=True))))
        for vs, ve, n, *values in sums.select("_vs", "_ve", "_n", *names).iter_rows()
        for _ in range(n)
    )
