"""Shards stay on the executor that has their state.

The engine of a shard lives next to one executor. Spark places a task wherever a core is free, so on a cluster a shard's
task would usually find no engine, and replay the packets that another executor has processed. A task prefers, however,
the executor that has a cached partition of its input. So there is a cached table with one row in each partition, one
partition for each shard, its *home*; packets are joined with it, partition by partition. This is an ordinary plan of
Spark: any sink may follow, and nothing else of the query changes (decision 55).

A home that is lost with its executor is cached again by the task that needs it, where Spark places it. When executors
come or go, homes move until all executors have about the same number.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

HOME = "_home"
"""The column of the join: a number that Spark's hash sends to the partition of its shard."""
CANDIDATES = 50
"""Numbers to try for each shard. One has none of them with a probability of e^-50."""
LOOK_SECONDS = 1.0

CACHED = re.compile(r"executor_.*_([^_]+)")
"""Spark's text for a place that is an executor, as in `executor_host_3`."""

Executor = str
Where = list[Executor | None]
"""The executor with the home of each shard."""


def has_executors(spark: SparkSession) -> bool:
    """Whether tasks run elsewhere than in the process of the driver, so that their place matters."""
    return re.fullmatch(r"local(\[.*\])?", spark.sparkContext.master or "") is None


class Placement:
    """The homes of the shards of one query; `run` distinguishes them from those of other queries."""

    def __init__(self, spark: SparkSession, shards: int, run: str) -> None:
        self.spark, self.shards = spark, shards
        self.keys = keys_of_partitions(spark, shards)
        numbered = spark.range(shards).select(self._key(sf.col("id")).alias(HOME), sf.lit(run).alias("_run"))
        self.homes = numbered.repartition(shards, HOME).persist()
        self.homes.count()
        self._blocks = Blocks(spark, self.homes, shards)
        self._balanced_for: frozenset[Executor] = frozenset()
        self.balance()

    def _key(self, shard: Column) -> Column:
        return sf.element_at(sf.lit(self.keys), shard.cast("int") + 1)

    def bring(self, packets: DataFrame, shard: Column) -> DataFrame:
        """The packets in the partitions of their shards, each where its home is. In a join by sorting, the first input
        decides about the place of a task."""
        keyed = packets.withColumn(HOME, self._key(shard)).repartition(self.shards, HOME)
        return self.homes.select(HOME).hint("merge").join(keyed, HOME).drop(HOME)

    # --- executors that come and go ----------------------------------------------------------------------------------

    def watch(self, is_active: Callable[[], bool], ended: threading.Event) -> None:
        """Balance homes whenever there are other executors, until the query has ended."""

        def look() -> None:
            while not ended.wait(LOOK_SECONDS) and is_active():
                with suppress(Py4JError, OSError):  # the session ends; or try again
                    self.balance()

        threading.Thread(target=look, name="cedr-placement", daemon=True).start()

    def balance(self) -> None:
        """Move homes from executors that have too many to those that have too few, and give lost ones a place."""
        executors = self._blocks.executors()
        if frozenset(executors) == self._balanced_for or not executors:
            return
        now = self._blocks.where()
        wanted = balanced(now, list(executors))
        if wanted != now:
            self._blocks.move(wanted, executors)
        if self._blocks.where() == wanted:
            self._balanced_for = frozenset(executors)

    def end(self) -> None:
        with suppress(Py4JError):
            self.homes.unpersist()


def keys_of_partitions(spark: SparkSession, shards: int) -> list[int]:
    """For each partition the first number that Spark's hash sends there."""
    partition = sf.pmod(sf.hash("id"), sf.lit(shards)).alias("partition")
    found: dict[int, int] = {}
    for row in spark.range(0, CANDIDATES * shards, 1, 1).select("id", partition).collect():
        found.setdefault(row.partition, row.id)
    return [found[partition] for partition in range(shards)]


def balanced(now: Where, executors: Sequence[Executor]) -> Where:
    """Where homes belong: as many on each executor as on others, or one more; as few as possible move."""
    known = set(executors)
    wanted: Where = [home if home in known else None for home in now]
    counts = Counter(home for home in wanted if home is not None)
    fewest, more = divmod(len(now), len(executors))
    ranked = sorted(executors, key=lambda e: -counts[e])
    room = {executor: fewest + (place < more) for place, executor in enumerate(ranked)}
    for shard, home in enumerate(wanted):
        if home is not None:
            if room[home]:
                room[home] -= 1
            else:
                wanted[shard] = None
    free = [executor for executor in executors for _ in range(room[executor])]
    return [home if home is not None else free.pop(0) for home in wanted]


class Blocks:
    """The cached partitions of the homes, through the objects of Spark's driver that Python has no names for."""

    def __init__(self, spark: SparkSession, homes: DataFrame, shards: int) -> None:
        context: Any = spark.sparkContext
        self.jvm, self.java, self.shards = context._jvm, context._jsc, shards
        leaves = homes.select("*")._jdf.queryExecution().withCachedData().collectLeaves()
        self.rdd = leaves.apply(0).cacheBuilder().cachedColumnBuffers()
        self.level = self.rdd.getStorageLevel()

    def executors(self) -> dict[Executor, str]:
        """The hosts of the executors that are there."""
        found = {}
        known = self.java.sc().taskScheduler().executorIdToHost().iterator()
        while known.hasNext():
            executor = known.next()
            found[str(executor._1())] = str(executor._2())
        return dict(sorted(found.items()))

    def where(self) -> Where:
        return [self._home(shard) for shard in range(self.shards)]

    def _home(self, shard: int) -> Executor | None:
        found = self.java.sc().getPreferredLocs(self.rdd, shard)
        place = CACHED.fullmatch(str(found.apply(0).toString())) if found.size() else None
        return place[1] if place else None  # a place without an executor is where its input is, not its cache

    def move(self, wanted: Where, hosts: Mapping[Executor, str]) -> None:
        """Forget all homes, and run a small job in which the task of each prefers its executor: there it is cached.
        Where an executor is busy for long, Spark chooses another, and the next attempt goes on from that."""
        self.rdd.unpersist(True)
        self.rdd.persist(self.level)
        places = []
        for shard, executor in enumerate(wanted):
            assert executor is not None
            preferred = self.jvm.PythonUtils.toSeq([f"executor_{hosts[executor]}_{executor}"])
            places.append(self.jvm.scala.Tuple2(shard, preferred))
        any_class = self.java.emptyRDD().classTag()
        preferring = self.java.sc().makeRDD(self.jvm.PythonUtils.toSeq(places), any_class)
        preferring.toJavaRDD().zip(self.rdd.toJavaRDD()).count()
