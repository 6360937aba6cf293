"""A set of replicas in one Spark: different plans and levels, jump starts, feedback, copies that are over or wrong."""

import random
import sys
from types import SimpleNamespace

import polars as pl
import pytest

import cedr
from cedr import Replicas
from cedr.replicas.control import TRY_AGAIN, USER_ERROR, Control, DesiredState
from cedr.replicas.copies import CopySink, copies_in, copies_of
from cedr.replicas.member import main
from cedr.replicas.replicas import emitted_up_to
from cedr.sinks.base import SinkError
from cedr.storage.folder import Folder
from cedr.storage.lock import Lock
from cedr.temporal import INF, MIN, QueryError

ONCE = {"availableNow": True}


def reports():
    return cedr.source("reports", {"m": str, "v": int}, vs="at", ve="until", cti="cti").moving(25)


def sums():
    return reports().group_by("m").agg(n=cedr.count(), v=cedr.sum("v"))


def sums_otherwise():
    return reports().group_by("m").agg(v=cedr.sum("v"), n=cedr.count()).select("m", "n", "v")


def rows(seed=1, n=120):
    rng = random.Random(seed)
    found = [(t + rng.randint(0, 9), t, t + rng.randint(1, 30), rng.choice("abc"), rng.randint(0, 9)) for t in range(n)]
    return [row[1:] for row in sorted(found)]


def write(folder, number, part, cti):
    folder.mkdir(exist_ok=True)
    kinds = {"at": pl.Int64, "until": pl.Int64, "m": pl.String, "v": pl.Int64, "cti": pl.Int64}
    rows = [(*row, None) for row in part] + [(None, None, None, None, cti)]
    pl.DataFrame(rows, kinds, orient="row").write_parquet(folder / f"{number}.parquet")


@pytest.fixture
def given(tmp_path):
    """Four files; after each one the promise that holds."""
    all_rows = rows()
    for number in range(4):
        rest = all_rows[30 * (number + 1) :]
        write(
            tmp_path / "in", number, all_rows[30 * number : 30 * (number + 1)], min((r[0] for r in rest), default=INF)
        )
    return tmp_path / "in"


def expected(given, files=4):
    return sums().run(pl.concat([pl.read_parquet(given / f"{i}.parquet") for i in range(files)])).table()


def files(given, **how):
    return cedr.files(given, "parquet", **how)


def run(replicas, spark, data, name, **how):
    running = replicas.start(spark, data, name, trigger=ONCE, **how)
    running.await_termination()
    return running


def merge(replicas, spark, place):
    running = replicas.start_merge(spark, sink=cedr.sinks.parquet(place), trigger=ONCE)
    running.await_termination()
    return running


def test_replicas_of_different_plans_and_levels_are_one_answer(spark, given, tmp_path):
    one, two = (
        Replicas(tmp_path / "set", sums()),
        Replicas(tmp_path / "set", sums_otherwise().with_consistency("strong")),
    )
    run(one, spark, files(given, max_files=1), "a")
    run(two, spark, files(given, max_files=3), "b")
    merged = merge(one, spark, tmp_path / "out")
    assert merged.table().equals(expected(given))
    assert emitted_up_to(merged) == INF
    assert merged.late().height == 0
    assert one.status().select("name", "cti", "over").rows() == [("a", INF, False), ("b", INF, False)]
    assert CopySink(one.copies, "a").folder.names()[0] == "000000000000-000.parquet"


def test_the_merge_goes_on_with_copies_that_come_later_and_without_those_that_are_over(spark, given, tmp_path):
    set_ = Replicas(tmp_path / "set", sums())
    (tmp_path / "half").mkdir()
    for number in range(2):
        (given / f"{number}.parquet").rename(tmp_path / "half" / f"{number}.parquet")
    run(set_, spark, files(tmp_path / "half"), "old")
    merge(set_, spark, tmp_path / "out")
    for number in range(2, 4):
        (given / f"{number}.parquet").rename(tmp_path / "half" / f"{number}.parquet")
    run(Replicas(tmp_path / "set", sums_otherwise()), spark, files(tmp_path / "half"), "new")
    set_.retire("old")
    with pytest.raises(QueryError, match="replica 'old' is over; start a new one under another name"):
        run(set_, spark, files(tmp_path / "half"), "old")
    merged = merge(set_, spark, tmp_path / "out")
    assert merged.table().equals(expected(tmp_path / "half"))
    assert emitted_up_to(merged) == INF


def test_a_replica_is_jump_started_from_the_checkpoint_of_another(spark, given, tmp_path):
    """It has the other's state and emits only what is still open, and what follows."""
    late = tmp_path / "late"
    late.mkdir()
    for number in (2, 3):
        (given / f"{number}.parquet").rename(late / f"{number}.parquet")
    set_ = Replicas(tmp_path / "set", sums())
    run(set_, spark, files(given), "a")
    merge(set_, spark, tmp_path / "out")
    set_.jump_start("b", checkpoint_of="a")
    set_.retire("a")
    for number in (2, 3):
        (late / f"{number}.parquet").rename(given / f"{number}.parquet")
    run(set_, spark, files(given), "b")
    emitted = pl.concat([pl.read_parquet(p) for p in sorted((tmp_path / "set" / "copies" / "b").glob("*.parquet"))])
    assert emitted["_join"].unique().to_list() == [set_.status().filter(name="b")["join"].item()]
    assert emitted.filter(pl.col("_end") < emitted["_join"][0], pl.col("_new_end").is_null()).height == 0
    merged = merge(set_, spark, tmp_path / "out")
    assert merged.table().equals(expected(given))
    assert emitted_up_to(merged) == INF
    with pytest.raises(
        SinkError, match=r"copy 'b' .* already exists; use a new name for a copy that starts from scratch"
    ):
        set_.jump_start("b", checkpoint_of="a")
    with pytest.raises(QueryError, match=r"there is no replica 'c' in .*; available: a, b"):
        set_.jump_start("d", checkpoint_of="c")


def test_a_query_is_jump_started_from_a_table_and_the_live_stream(spark, given, tmp_path):
    """The replica reads only what lives at 30 or later, so what it emits from time 60 on is right; the table has
    what was before."""
    live = [row for row in rows() if row[1] >= 30]
    write(tmp_path / "live", 0, live, INF)
    set_ = Replicas(tmp_path / "set", sums())
    run(set_, spark, files(tmp_path / "live"), "live", join=60)
    merged = merge(set_, spark, tmp_path / "out")
    assert emitted_up_to(merged) == MIN  # no copy contains the time before 60
    whole = expected(given)
    assert not merged.table().equals(whole)
    set_.seed("archive", whole.filter(pl.col("vs") < 60), until=60)
    merged = merge(set_, spark, tmp_path / "out")
    assert emitted_up_to(merged) == INF
    assert merged.table().equals(whole)


def test_feedback_spares_a_replica_that_is_behind(spark, given, tmp_path):
    set_ = Replicas(tmp_path / "set", sums())
    run(set_, spark, files(given), "fast")
    merged = merge(set_, spark, tmp_path / "out")
    table = merged.table()
    assert set_.control.feedback == MIN
    set_.control.feed_back(80)
    run(set_, spark, files(given, max_files=1), "slow")
    rows_of = {
        name: pl.concat([pl.read_parquet(p) for p in (tmp_path / "set" / "copies" / name).glob("*.parquet")])
        for name in ("fast", "slow")
    }
    emitted = {name: frame.filter(pl.col("_done").is_null()) for name, frame in rows_of.items()}
    ends = pl.max_horizontal("_end", "_new_end")
    assert emitted["fast"].filter(ends < 80).height > 50
    assert emitted["slow"].filter(ends < 80).height == 0
    set_.retire("fast")
    assert merge(set_, spark, tmp_path / "out").table().equals(table)


def test_a_copy_that_lies_is_put_aside_and_named(spark, given, tmp_path):
    set_ = Replicas(tmp_path / "set", sums())
    honest = expected(given)
    set_.seed("honest", honest.filter(pl.col("vs") < 70), until=70)
    merge(set_, spark, tmp_path / "out")
    set_.seed("liar", honest.filter(pl.col("ve") < 70), until=100)
    merged = merge(set_, spark, tmp_path / "out")
    assert emitted_up_to(merged) == 70
    assert merged.table().equals(honest.filter(pl.col("vs") < 70))
    assert set(merged.late()["reason"]) == {"wrong_copy"}
    assert all("merge, copy 'liar': another input has settled" in message for message in merged.late()["message"])


def test_times_of_day_stay_what_they_are(spark, tmp_path):
    (tmp_path / "in").mkdir()
    at = pl.datetime_range(pl.datetime(2026, 1, 1), pl.datetime(2026, 1, 1, 0, 9), "1m", eager=True).alias("at")
    table = pl.DataFrame({"at": at, "m": list("ababababab"), "v": range(10)})
    table.write_parquet(tmp_path / "in" / "0.parquet")
    query = cedr.source("r", {"m": str, "v": int}, vs="at", delay="1m").sliding("5m").group_by("m").agg(v=cedr.sum("v"))
    set_ = Replicas(tmp_path / "set", query)
    run(set_, spark, files(tmp_path / "in"), "a", close=True)
    merged = merge(set_, spark, tmp_path / "out")
    assert merged.table().equals(query.run(table).table())
    assert merged.table().schema["vs"] == pl.Datetime("us")


def test_mistakes_are_explained(spark, given, tmp_path):
    set_ = Replicas(tmp_path / "set", sums())
    with pytest.raises(QueryError, match=r"no replica in .* has any output yet; start one first"):
        merge(set_, spark, tmp_path / "out")
    with pytest.raises(QueryError, match=r"emits .*m: String, .*but the replicas in .* emit .*; a new version"):
        Replicas(tmp_path / "set", reports().group_by("m").agg(n=cedr.count()))
    with pytest.raises(QueryError, match=r"replica 'a/b': a name consists of letters"):
        run(set_, spark, files(given), "a/b")
    with pytest.raises(QueryError, match="this name is reserved for the merge"):
        run(set_, spark, files(given), "merge")
    with pytest.raises(QueryError, match=r"there is no replica 'x' in .*; available: none"):
        set_.retire("x")


def test_a_member_whose_checkpoint_another_one_still_has_may_be_tried_again(spark, given, tmp_path):
    (tmp_path / "job.py").write_text("import sys\njob = sys.modules['of_the_test'].job\n")
    sys.modules["of_the_test"] = SimpleNamespace(job=lambda spark, name: cedr.Replica(sums(), files(given)))
    control = Control(str(tmp_path / "set" / "control"))
    control.make()
    (tmp_path / "set" / "logs").mkdir()
    control.set_desired(DesiredState("a", f"{tmp_path}/job.py:job"))
    with Lock(Folder(str(tmp_path / "set" / "checkpoints" / "a" / "cedr"))) as lock:
        assert main(str(tmp_path / "set"), "a", "local[2]") == TRY_AGAIN
        assert "is in use by a query that runs in process" in control.status()["a"].error
        lock.release()
    control.set_desired(DesiredState("a", f"{tmp_path}/job.py:no_job"))
    assert main(str(tmp_path / "set"), "a", "local[2]") == USER_ERROR


def test_what_copies_write_is_what_merge_by_reads(given, tmp_path):
    """The format, without Spark."""
    set_ = Replicas(tmp_path / "set", sums())
    set_.seed("a", expected(given), until=INF)
    found = [pl.read_parquet(p) for p in sorted((tmp_path / "set" / "copies").glob("*/*.parquet"))]
    answer = set_.merged().run(pl.concat(found))
    assert answer.table().equals(expected(given))
    assert copies_in(set_.copies).format == "parquet"
    assert list(copies_of(sums().schema).columns) == ["_copy", "_join", "m", "n", "v"]
