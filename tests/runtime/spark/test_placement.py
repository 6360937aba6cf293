"""Shards stay on the executor that has their state, and spread evenly when executors come and go."""

import json
import signal
from collections import Counter

from driven import EXECUTOR, Size, driver, send
from hypothesis import given
from hypothesis import strategies as st

from cedr.runtime.spark.driver.placement import balanced, keys_of_partitions


@given(st.data())
def test_homes_are_balanced_with_as_few_moves_as_possible(data):
    executors = data.draw(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True))
    now = data.draw(st.lists(st.sampled_from([*"abcdef", None]), min_size=1, max_size=20))
    wanted = balanced(now, executors)
    counts = Counter(dict.fromkeys(executors, 0))
    counts.update(wanted)
    assert set(wanted) <= set(executors)
    assert max(counts.values()) - min(counts.values()) <= 1
    fewest, more = divmod(len(now), len(executors))
    had = sorted((now.count(executor) for executor in executors), reverse=True)
    could_stay = sum(min(count, fewest + (place < more)) for place, count in enumerate(had))
    assert sum(old == new for old, new in zip(now, wanted, strict=True)) == could_stay


def test_balanced_homes_do_not_move():
    assert balanced(["a", "b", "b", "a", "c"], ["c", "b", "a"]) == ["a", "b", "b", "a", "c"]


def test_each_partition_has_a_number_that_spark_sends_there(spark):
    keys = keys_of_partitions(spark, 7)
    placed = spark.createDataFrame([(key,) for key in keys], "key long").repartition(7, "key").rdd.glom().collect()
    assert [[row.key for row in rows] for rows in placed] == [[key] for key in keys]


def test_shards_stay_on_their_executors_until_one_is_lost(tmp_path):
    """Two stages, two shards, two executors. When one is lost, Spark starts another; within ten micro-batches each has
    a shard again, and nothing moves any more."""
    with driver(tmp_path, "local-cluster[2,1,1024]", Size(files=22, rows=200)) as victim:
        victim.wait_for("done", 6)
        lost = victim.checkpoint.reached("begun")
        send(victim.processes(EXECUTOR)[0], signal.SIGKILL)
    found = {int(batch): moved for batch, (moved, _) in json.loads((tmp_path / "moved.json").read_text()).items()}
    assert [found[batch] for batch in range(1, 6)] == [0] * 5
    assert any(found[batch] for batch in range(lost, lost + 10) if batch in found)
    assert [found[batch] for batch in found if batch >= lost + 10] == [0] * sum(batch >= lost + 10 for batch in found)
