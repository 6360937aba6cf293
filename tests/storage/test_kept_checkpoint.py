"""State that an earlier version wrote is read by this one."""

from runtime.spark.small_run import LATE, SmallRun, expected
from storage.kept_checkpoint import DONE, unpack

from cedr.columnar.state.tables import tables_of
from cedr.runtime.spark.shard.inspection import Inspection


def test_a_query_continues_with_it(tmp_path):
    run = SmallRun(unpack(tmp_path), DONE)
    run.run_from(DONE + 1)
    assert run.table() == expected()
    assert run.late_rows() == LATE


def test_it_is_listed(tmp_path):
    found = Inspection(str(unpack(tmp_path) / "checkpoint"))
    assert found.damaged == []
    assert [(s.stage, s.shard, s.batch, s.snapshot) for s in found.shards] == [
        (stage, shard, DONE, DONE - 1) for stage in (1, 2) for shard in (0, 1)
    ]
    tables = [tables_of(state)["groups"] for state in found.state_of("1.1").values()]
    assert sorted(k for table in tables for k in table["k"]) == [0, 1, 2]
