"""Reachability in several shards: how evenly the work is spread, and what each of them does again.

The tasks of micro-batches run one after the other in this process, without Spark, so that the processor's time of each
shard can be emitted. Edges come in ten micro-batches; the first one, in which the sources come too, does not count.
"""

from collections import defaultdict
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np
import polars as pl
from harness import BenchmarkReport, median, spread

import cedr
from cedr.columnar.tally import in_order, net_changes, summed
from cedr.plan.nodes.level import Level
from cedr.plan.partitioning import staged
from cedr.runtime.spark.driver.job import SparkJob
from cedr.runtime.spark.reader.packer import Packer, closing
from cedr.runtime.spark.shard.packet import Packet, from_blob
from cedr.runtime.spark.shard.shard import Shard
from cedr.runtime.spark.shard.state import SpillFile

BATCHES = 10
SHARDS = (1, 2, 4)
EDGES_A_NODE = 2
NODES_A_SOURCE = 10

EDGES = cedr.source("edges", {"start": int, "end": int}, vs="vs", ve="ve", delay=1)
SOURCES = cedr.source("sources", {"node": int}, vs="vs", ve="ve", delay=1)
KINDS = {"loop": cedr.reachability(EDGES, SOURCES), "settled": cedr.reachability(EDGES, SOURCES, settled=True)}


def shards(report: BenchmarkReport, edges: int, rounds: int = 3) -> None:
    """The slowest shard determines the time of a micro-batch, all of them its cost."""
    fed = graph(edges)
    report.print(f"{edges:,} edges among {edges // EDGES_A_NODE:,} nodes, in 1, 2 and 4 shards")
    for kind, query in KINDS.items():
        _, expected = measured(query, fed, SHARDS[0])  # compiles what is to be compiled
        same = True
        for number in SHARDS:
            found = [measured(query, fed, number) for _ in range(rounds)]
            slowest, whole = [max(seconds) for seconds, _ in found], [sum(seconds) for seconds, _ in found]
            note = f"{median(whole):.2f} s in all, {expected.height:,} pairs"
            title = f"{kind} in {number} shard{'s' if number > 1 else ''}: the slowest"
            report.add(title, median(slowest), "s", spread=spread(slowest), note=note)
            same = same and all(answer.equals(expected) for _, answer in found)
        report.add(f"{kind} in shards: answers agree", float(same), "of 1", bar=1)


def graph(edges: int) -> list[dict[str, pl.DataFrame]]:
    """What comes in each micro-batch, by source."""
    random = np.random.default_rng(5)
    nodes = edges // EDGES_A_NODE
    ends = {name: random.integers(0, nodes, edges) for name in ("start", "end")}
    table = pl.DataFrame({**ends, "vs": np.sort(random.integers(0, 1000, edges)), "ve": 3000})
    sources = pl.DataFrame({"node": np.arange(nodes // NODES_A_SOURCE), "vs": 0, "ve": 2000})
    fed = [{"edges": part} for part in table.iter_slices(-(-edges // BATCHES))]
    return [fed[0] | {"sources": sources}, *fed[1:]]


def measured(query: cedr.Stream, fed: list[dict[str, pl.DataFrame]], number: int) -> tuple[list[float], pl.DataFrame]:
    """The processor's time of each shard, and the tuples that are there in the end."""
    with TemporaryDirectory() as folder:
        plan = staged(Level(query.plan))
        job = SparkJob(plan, number, "run", "application", folder, f"{folder}/late", pl.Int64(), "changelog")
        assert job.last == 1, "one stage"
        working = [Shard(job, 1, shard) for shard in range(number)]
        seconds, emitted = [0.0] * number, []
        for batch, packets in enumerate([*(packed(job, b, tables) for b, tables in enumerate(fed)), closed(job)]):
            for shard in working:
                began = process_time()
                answer = shard.process(batch, packets[shard.shard])
                seconds[shard.shard] += (process_time() - began) * (batch > 0)
                shard.tidy()
                emitted.append(net_changes(from_blob(answer.blob), plan.schema))
    return seconds, in_order(summed(emitted))


def closed(job: SparkJob) -> dict[int, list[Packet]]:
    """By shard, the packet that closes the input."""
    found = [packet for source in job.plan.sources for packet in closing(job, source)]
    return {shard: [packet for packet in found if packet.shard == shard] for shard in range(job.shards)}


def packed(job: SparkJob, batch: int, tables: dict[str, pl.DataFrame]) -> dict[int, list[Packet]]:
    """By shard what it gets of these rows."""
    found = defaultdict(list)
    for source, table in tables.items():
        for packet in Packer(job, source, 0, SpillFile(job.folder, batch)).packets([table]):
            found[packet.shard].append(packet)
    return found
