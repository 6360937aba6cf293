"""A changed query continues with the state of the one before: every case of docs/upgrading.md, without Spark."""

from random import Random
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan.catalogue import MERGES, QUERIES, SCHEMA
from runtime.spark.cluster import Cluster, history
from runtime.spark.tables import COLUMNS, table_of
from runtime.spark.test_rescale import dense_stream

import cedr
from cedr.api import source_of_keys
from cedr.columnar import index
from cedr.plan.changes import changes
from cedr.plan.nodes.level import Level
from cedr.plan.partitioning import staged
from cedr.runtime.spark.driver.job import description, record_of
from cedr.runtime.spark.driver.late_files import read_late
from cedr.runtime.spark.shard import state
from cedr.storage.folder import Folder
from cedr.temporal import QueryError
from cedr.temporal.errors import DamagedFileError
from cedr.temporal.time import INF
from cedr.testing import assert_same

ALL = {**QUERIES, **MERGES}
LEVELS = {
    "strong": cedr.STRONG,
    "middle": cedr.MIDDLE,
    "some": cedr.Consistency(3, INF),
    "more": cedr.Consistency(9, INF),
}
very_few = settings(max_examples=max(2, settings.default.max_examples // 25))
PARTS = 5


@pytest.fixture(scope="module", autouse=True)
def small():
    """Some packets are spilled; indices are compacted at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "MANY_BYTES", 100)
        patch.setattr(index, "WORTH_COMPACTING", 1)
        yield


@pytest.mark.parametrize("name", ALL)
@very_few
@given(seed=st.integers(0, 2**32), levels=st.permutations(sorted(LEVELS)))
def test_another_level_changes_nothing_in_the_end(name, seed, levels):
    """A change after the second and after the fourth micro-batch."""
    query, random = ALL[name], Random(seed)
    written = query.stream(**COLUMNS)
    written = written.with_latency("eager") if name.startswith("pattern") else written  # else it depends on the level
    streams = [written.with_consistency(LEVELS[level]) for level in levels]
    keys = 2 if name == "merge of plans" else 7
    inputs = {source: dense_stream(random, keys, query.infinite) for source in ("a", "b")[: query.ports]}
    with TemporaryDirectory() as folder:
        cluster, changes = Cluster(streams[0], folder, 2), []
        for batch in range(PARTS):
            if batch in (2, 4):
                cluster.change(streams[batch // 2], batch - 1)
            pieces = {s: e[len(e) * batch // PARTS : len(e) * (batch + 1) // PARTS] for s, e in inputs.items()}
            tables = {source: [table_of(elements, SCHEMA)] for source, elements in pieces.items()}
            changes.append(cluster.run(batch, cluster.packets(batch, tables)))
        changes.append(cluster.run(PARTS, cluster.closing()))
        assert read_late(Folder(cluster.job.late)).height == 0
    never = streams[0].run({source: table_of(elements, SCHEMA) for source, elements in inputs.items()})
    assert_same(history(changes, streams[0].schema), never.history())


# --- one change after the other ------------------------------------------------------------------------------------

FIRST = [(1, 0, 1), (2, 1, 2), (4, 0, 3), (5, 1, 4), (6, 0, 2)]
SECOND = [(7, 0, 2), (8, 1, 3), (9, 0, 9), (13, 1, 2), (21, 0, 5)]


def frame(rows) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"vs": pl.Int64, "m": pl.Int64, "v": pl.Int64}, orient="row")


def readings(**options):
    return source_of_keys("a", SCHEMA, vs="vs", delay=3, **options)


def sums(rows=None):
    return (readings() if rows is None else rows).sliding(10).group_by("m").agg(v=cedr.sum("v"))


class Changing:
    """A query over two micro-batches that changes between them, after a crash of all shards."""

    def __init__(self, folder, query, shards: int = 2) -> None:
        self.cluster, self.counted, self.batch = Cluster(query, str(folder), shards), [], 0

    def rows(self, *rows) -> "Changing":
        packets = self.cluster.packets(self.batch, {"a": [frame(rows)]})
        self.counted.append(self.cluster.run(self.batch, packets))
        self.batch += 1
        return self

    def change(self, query):
        return self.cluster.change(query, self.batch - 1)

    def close(self) -> list[pl.DataFrame]:
        self.counted.append(self.cluster.run(self.batch, self.cluster.closing()))
        return self.counted

    def history(self):
        schema = self.cluster.job.plan.schema
        return history(self.close(), schema)


def small_only(low: int):
    return sums(readings().where(pl.col("v") > low))


def test_another_where_below_counts_for_rows_from_then_on(tmp_path):
    """Of the first rows those above 1 are in the sums, of the others those above 2."""
    run = Changing(tmp_path, small_only(1)).rows(*FIRST)
    found = run.change(small_only(2))
    (text,) = found.consequences
    assert "Rows that have arrived stay as they were selected then" in text
    assert not found.other_result
    kept = [row for row in FIRST if row[2] > 1] + [row for row in SECOND if row[2] > 2]
    assert_same(run.rows(*SECOND).history(), sums().run(frame(kept)).history())


def test_another_expression_below_counts_for_rows_from_then_on(tmp_path):
    run = Changing(tmp_path, sums(readings().with_columns(v=pl.col("v") * 2))).rows(*FIRST)
    assert run.change(sums(readings().with_columns(v=pl.col("v") * 3))).consequences
    kept = [(t, m, v * 2) for t, m, v in FIRST] + [(t, m, v * 3) for t, m, v in SECOND]
    assert_same(run.rows(*SECOND).history(), sums().run(frame(kept)).history())


def test_a_where_below_may_not_let_in_what_was_excluded_for_ever(tmp_path):
    """Operators were promised that it never comes, and may have dropped state for that reason."""
    run = Changing(tmp_path, small_only(2)).rows(*FIRST)
    with pytest.raises(QueryError, match="relies on the promise that no row with such a value of v ever comes"):
        run.change(small_only(1))
    with pytest.raises(QueryError, match="ever comes"):
        run.change(sums())
    run.change(sums(readings().where(pl.col("v") > 2, pl.col("m") < 1)))
    kept = [row for row in FIRST if row[2] > 2] + [row for row in SECOND if row[2] > 2 and row[1] < 1]
    assert_same(run.rows(*SECOND).history(), sums().run(frame(kept)).history())


def test_a_where_that_promises_nothing_may_let_in_more(tmp_path):
    run = Changing(tmp_path, sums(readings().where(pl.col("v") % 3 != 0))).rows(*FIRST)
    run.change(sums())
    kept = [row for row in FIRST if row[2] % 3] + SECOND
    assert_same(run.rows(*SECOND).history(), sums().run(frame(kept)).history())


def corrected(low: int):
    return sums(source_of_keys("a", SCHEMA, **COLUMNS).where(pl.col("v") > low))


def test_another_where_below_is_refused_where_rows_are_corrected(tmp_path):
    run = Changing(tmp_path, corrected(1))
    with pytest.raises(QueryError, match="a correction of a row that only one of both lets through would be lost"):
        run.change(corrected(2))


def test_another_where_between_operators_is_refused_where_results_are_corrected(tmp_path):
    def nested(low: int):
        return sums().where(pl.col("v") > low).group_by("m").agg(n=cedr.count())

    with pytest.raises(QueryError, match="would be lost"):
        Changing(tmp_path, nested(1)).change(nested(2))


def test_another_where_above_counts_for_results_from_then_on(tmp_path):
    """With perfect input no result is corrected: the same table may go on."""

    def high(low: int):
        return sums().where(pl.col("v") > low).with_consistency(cedr.STRONG)

    second = [(t + 20, m, v) for t, m, v in SECOND]
    run = Changing(tmp_path, high(3)).rows(*FIRST, (19, 0, 1), (20, 1, 1))
    found = run.change(high(5))
    assert len(found.consequences) == 1
    assert not found.other_result
    emitted = history(run.counted, run.cluster.job.plan.schema)
    every = sums().run(frame([*FIRST, (19, 0, 1), (20, 1, 1), *second])).history()
    later = [e for e in every if e.payload.v > 5 and e.ve > 17]
    expected = sorted([*emitted, *later], key=str)
    assert sorted(run.rows(*second).history(), key=str) == expected
    assert 0 < len(list(emitted)) < len(expected)


def test_results_that_are_corrected_need_another_table(tmp_path):
    found = Changing(tmp_path, sums().where(pl.col("v") > 3)).change(sums().where(pl.col("v") > 5))
    assert found.other_result
    assert Changing(tmp_path, sums()).change(sums().with_columns(w=pl.col("v") + 1)).other_result


def test_a_longer_and_a_shorter_memory(tmp_path):
    """Nothing that was forgotten comes back; from then on more, or less, is accepted."""

    def remembering(length: int):
        return sums().with_consistency(block=0, remember=length)

    run = Changing(tmp_path, remembering(4), shards=1).rows((1, 0, 1), (20, 0, 1), (2, 0, 1))
    run.rows((3, 0, 1))
    assert read_late(Folder(run.cluster.job.late)).height == 1
    found = run.change(remembering(100))
    assert not found.consequences
    run.rows((40, 0, 1), (19, 0, 1))
    assert read_late(Folder(run.cluster.job.late)).height == 1
    run.change(remembering(5))
    run.rows((41, 0, 1)).rows((25, 0, 1))
    assert read_late(Folder(run.cluster.job.late)).height == 2


def test_results_may_come_earlier_and_not_later(tmp_path):
    run = Changing(tmp_path, sums()).rows(*FIRST)
    assert not run.change(sums().with_latency("eager")).consequences
    run.rows(*SECOND)
    with pytest.raises(QueryError, match="had the latency eager: what it has emitted early could not be corrected"):
        run.change(sums())
    assert_same(run.history(), sums().run(frame(FIRST + SECOND)).history())


def test_a_where_about_groups_counts_as_below(tmp_path):
    """What the state has of other groups is still emitted."""
    run = Changing(tmp_path, sums()).rows(*FIRST)
    (text, *_) = run.change(sums().where(pl.col("m") == 0)).consequences
    assert "Aggregate by m" in text
    kept = FIRST + [row for row in SECOND if row[1] == 0]
    assert_same(run.rows(*SECOND).history(), sums().run(frame(kept)).history())


def test_columns_of_a_source_that_no_operator_reads(tmp_path):
    def query(more):
        source = source_of_keys("a", {**SCHEMA, **more}, vs="vs", delay=3)
        return source.sliding(10).group_by("m").agg(v=cedr.sum("v"))

    run = Changing(tmp_path, query({"x": pl.String})).rows()
    assert not run.change(query({})).consequences
    assert_same(run.rows(*SECOND).history(), sums().run(frame(SECOND)).history())


# --- other aggregates ------------------------------------------------------------------------------------------------

MIDDLE = {"mid": cedr.median("v"), "s": cedr.sum("v")}
COMPUTED = {
    "max and min": {"hi": cedr.max("v"), "lo": cedr.min("v")},
    "of all kinds": {"last": cedr.last("v"), "kinds": cedr.count_distinct("v"), "usual": cedr.mode("v")},
    "counts": {"n": cedr.count(), "m2": cedr.count("v"), "mean": cedr.avg("v")},
}


def of(aggregates, latency="perfect"):
    return readings().sliding(10).group_by("m").agg(**aggregates).with_latency(latency)


@pytest.mark.parametrize("latency", ["perfect", "eager"])
@pytest.mark.parametrize("name", COMPUTED)
def test_new_aggregates_of_kept_rows(name, latency, tmp_path):
    """What is emitted or corrected from then on has the new column, computed from all rows."""
    new = {**MIDDLE, **COMPUTED[name]}
    run = Changing(tmp_path, of(MIDDLE, latency)).rows(*FIRST)
    found = run.change(of(new, latency))
    assert found.other_result
    before, run.counted = run.counted, []
    run.rows(*SECOND).close()
    never = list(of(new).run(frame(FIRST + SECOND)).history())
    names = list(of(new).schema)
    sums_of = pl.concat(run.counted).group_by("_vs", "_ve", *names).agg(pl.col("_n").sum())
    got = {tuple(row) for row in sums_of.filter(pl.col("_n") > 0).drop("_n").iter_rows()}
    assert got <= {(e.vs, e.ve, *(e.payload[n] for n in names)) for e in never}
    emitted = {row[:3] for row in pl.concat(before).filter(pl.col("_n") > 0).select("_vs", "_ve", "m").iter_rows()}
    assert {(e.vs, e.ve, e.payload.m) for e in never} - emitted <= {row[:3] for row in got}
    assert got


def test_fewer_aggregates(tmp_path):
    run = Changing(tmp_path, of({**MIDDLE, "n": cedr.count()})).rows(*FIRST)
    run.change(of({"mid": cedr.median("v")}))
    run.counted = []
    run.rows(*SECOND).close()
    later = history([c.filter(pl.col("_n") > 0) for c in run.counted], of({"mid": cedr.median("v")}).schema)
    never = of({"mid": cedr.median("v")}).run(frame(FIRST + SECOND)).history()
    assert list(later)
    assert all(event in never for event in later)


def test_late_rows_stay_late_where_columns_are_dropped(tmp_path):
    """The operator that checks rows is new, and knows how far its input is."""
    aggregates = {"v": cedr.sum("v"), "mid": cedr.median("w")}

    def query(names):
        chosen = {name: aggregates[name] for name in names}
        return readings().with_columns(w=pl.col("v") + 1).sliding(10).group_by("m").agg(**chosen)

    run = Changing(tmp_path, query(aggregates), shards=1).rows(*FIRST, (30, 0, 1))
    run.change(query(["v"]))
    run.rows((5, 0, 1), (31, 0, 1))
    assert read_late(Folder(run.cluster.job.late)).select("vs", "reason").rows() == [(5, "below_cti")]


@pytest.mark.parametrize(
    ("new", "lacks"),
    [
        ({"s2": cedr.sum("m2")}, "sum of m2"),
        ({"hi": cedr.max("m2")}, "max of m2"),
        ({"d": cedr.stddev("v")}, "squares"),
    ],
)
def test_aggregates_of_rows_that_were_not_kept_are_refused(new, lacks, tmp_path):
    def query(aggregates):
        return readings().with_columns(m2=pl.col("m") * 2).sliding(10).group_by("m").agg(**aggregates)

    with pytest.raises(QueryError, match=f"needs the .*{lacks}.* and has kept only"):
        Changing(tmp_path, query(MIDDLE)).change(query({**MIDDLE, **new}))


# --- refusals --------------------------------------------------------------------------------------------------------


def test_a_refusal_lists_operators(tmp_path):
    old = sums()
    new = readings().sliding(10).group_by("m").agg(v=cedr.sum("v")).distinct()
    with pytest.raises(QueryError) as error:
        Changing(tmp_path, old).change(new)
    text = str(error.value)
    assert "belongs to another query" in text
    assert "  unchanged  Aggregate by m: v=sum(v) (perfect) (stage 1)\n  new        Distinct" in text
    assert "Distinct (perfect) (stage 1) is new, and has no state" in text
    assert "Use a new checkpoint" in text


OTHERS = {
    "window": readings().sliding(20).group_by("m").agg(v=cedr.sum("v")),
    "key": readings().sliding(10).group_by("v").agg(v2=cedr.sum("m")),
    "source": sums(source_of_keys("a", SCHEMA, vs="vs", delay=9)),
    "lifetimes of the result": sums().sliding(5),
    "no state": readings().sliding(10),
    "type of a column": sums(readings().with_columns(v=pl.col("v").cast(pl.Float64))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_state_depends_on_may_not_change(name, tmp_path):
    with pytest.raises(QueryError, match="belongs to another query"):
        Changing(tmp_path, sums()).rows(*FIRST).change(OTHERS[name])


def test_packets_since_the_last_snapshot_are_for_the_query_before(tmp_path):
    run = Changing(tmp_path, small_only(1)).rows(*FIRST)
    run.cluster.shards = {}  # killed
    with pytest.raises(QueryError, match=r"2 of 2 shards have no snapshot .* after micro-batch 0"):
        run.change(small_only(2))


def test_a_lost_snapshot_is_named(tmp_path):
    run = Changing(tmp_path, small_only(1)).rows(*FIRST)
    run.change(small_only(2))
    for file in tmp_path.rglob("snapshot-*"):
        file.unlink()
    with pytest.raises(DamagedFileError, match="it is missing, and the changed query starts from it"):
        run.rows(*SECOND)


def test_a_pattern_that_changes_is_refused(tmp_path):
    """The line of an operator in the plan does not show its pattern."""

    def query(scope: str):
        text = f"EVENT X WHEN SEQUENCE(A x, A y, {scope}) WHERE x.m = y.m OUTPUT x.m AS m"
        return cedr.query(text, A=source_of_keys("a", SCHEMA, vs="vs", delay=3))

    with pytest.raises(QueryError, match=r"Match by m.* is new, and has no state"):
        Changing(tmp_path, query("5")).change(query("6"))


def test_a_join_keeps_the_columns_that_are_read(tmp_path):
    a, b = (source_of_keys(name, SCHEMA, vs="vs", delay=3).sliding(10) for name in "ab")
    joined = a.join(b, on="m")
    with pytest.raises(QueryError, match=r"Join inner .* is new, and has no state"):
        Changing(tmp_path, joined).change(joined.select("m", "v"))


# --- several changes -------------------------------------------------------------------------------------------------


def test_a_change_before_anything_was_processed_replaces_the_one_before(tmp_path):
    run = Changing(tmp_path, small_only(1)).rows(*FIRST)
    run.change(small_only(7))
    run.change(sums(readings().where(pl.col("v") > 2)).with_consistency(cedr.STRONG))
    run.change(small_only(2))
    kept = [row for row in FIRST if row[2] > 1] + [row for row in SECOND if row[2] > 2]
    assert_same(run.rows(*SECOND).history(), sums().run(frame(kept)).history())


def test_back_to_the_query_before(tmp_path):
    run = Changing(tmp_path, small_only(1)).rows(*FIRST)
    run.change(small_only(2))
    assert not run.change(small_only(1)).consequences
    kept = [row for row in FIRST + SECOND if row[2] > 1]
    assert_same(run.rows(*SECOND).history(), sums().run(frame(kept)).history())


def test_one_change_after_the_other(tmp_path):
    run = Changing(tmp_path, small_only(1)).rows(*FIRST)
    run.change(small_only(2))
    run.rows(*SECOND[:2])
    run.change(small_only(3))
    kept = [row for n, row in enumerate(FIRST + SECOND) if row[2] > (1 if n < 5 else 2 if n < 7 else 3)]
    assert_same(run.rows(*SECOND[2:]).history(), sums().run(frame(kept)).history())


def test_another_number_of_shards_right_after_a_change(tmp_path):
    run = Changing(tmp_path, small_only(1)).rows(*FIRST)
    run.change(small_only(2))
    run.cluster.rescale(5, 0)
    with pytest.raises(QueryError, match="let it process one before you change it again"):
        run.change(small_only(3))
    kept = [row for row in FIRST if row[2] > 1] + [row for row in SECOND if row[2] > 2]
    assert_same(run.rows(*SECOND).history(), sums().run(frame(kept)).history())


def test_state_is_moved_once(tmp_path):
    """Steps have other numbers in the changed query, so moving them again would mix them up."""
    run = Changing(tmp_path, sums()).rows(*FIRST)
    run.change(sums().with_consistency(cedr.STRONG))
    run.cluster.rescale(5, 0)
    run.rows(*SECOND[:2])
    for shard in run.cluster.shards.values():
        shard.tidy(ending=True)
    run.cluster.shards = {}
    assert_same(run.rows(*SECOND[2:]).history(), sums().run(frame(FIRST + SECOND)).history())


def test_rows_that_a_level_has_released_come_before_another_number_of_shards(tmp_path):
    run = Changing(tmp_path, sums().with_consistency(cedr.STRONG)).rows(*FIRST)
    run.change(sums())
    with pytest.raises(QueryError, match="let it process a micro-batch before you change the number of shards"):
        run.cluster.rescale(5, 0)
    assert_same(run.rows(*SECOND).history(), sums().run(frame(FIRST + SECOND)).history())


# --- identities ------------------------------------------------------------------------------------------------------


def identities(query) -> list[str]:
    plan = staged(Level(query.plan))
    record = record_of(plan, description(plan, 2))
    return [operator.identity for operator in record.operators if operator.role == "state"]


SAME = {
    "where": lambda a: sums(a.where(pl.col("v") > 1)),
    "expression": lambda a: sums(a.with_columns(v=pl.col("v") * 2)),
    "above": lambda a: sums(a).where(pl.col("v") > 1).with_columns(w=pl.col("v")),
    "level": lambda a: sums(a).with_consistency(cedr.STRONG),
    "latency": lambda a: sums(a).with_latency("eager"),
    "aggregates": lambda a: a.sliding(10).group_by("m").agg(v=cedr.sum("v"), n=cedr.count()),
}


@pytest.mark.parametrize("name", SAME)
def test_identities_do_not_depend_on_what_keeps_the_input(name):
    assert identities(SAME[name](readings())) == identities(sums())


@pytest.mark.parametrize("name", ["window", "key"])
def test_identities_depend_on_what_state_means(name):
    assert identities(OTHERS[name]) != identities(sums())


def test_equal_operators_have_identities_of_their_own():
    one = sums()
    twins = sums().union(sums())
    found = identities(twins)
    assert sorted(found) == sorted([*identities(one), f"{identities(one)[0]}-2"])


@pytest.mark.parametrize("name", ALL)
def test_a_query_has_not_changed_from_itself(name):
    """Written twice: other objects, the same records."""
    plans = [staged(Level(ALL[name].stream(**COLUMNS).plan)) for _ in range(2)]
    one, two = (record_of(plan, description(plan, 2)) for plan in plans)
    assert one == two
    found = changes(one, two)
    assert not found.problems
    assert not found.consequences
    for stage, upgrade in zip(plans[0].stages, found.stages, strict=True):
        assert upgrade.steps == tuple(range(len(stage.fragment.steps)))
