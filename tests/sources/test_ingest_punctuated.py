"""Punctuations on their way in: rows of tables, elements, the progress of each key, and rows from the future."""

import random
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from storage.through_bytes import through_bytes

import cedr
from cedr.api import source_of_keys
from cedr.columnar.promises import PromiseIndex, promises_of
from cedr.runtime.local import LocalRun
from cedr.sources.ingest import Ingest
from cedr.sources.keys import HIGHEST, KeyProgress
from cedr.sources.progress import ProgressReport, SourceProgress
from cedr.temporal import INF, MIN, Cti, Insert, PayloadError, QueryError, Row, StreamError
from cedr.temporal.punctuation import Range, punctuation
from cedr.temporal.stream import violations

SCHEMA = {"k": str, "v": int}


def source(**options):
    return source_of_keys("s", SCHEMA, **{"vs": "ts", **options}).plan


def table(*rows, **columns) -> pl.DataFrame:
    """Rows of ts, k, v and done."""
    kinds = {"ts": pl.Int64, "k": pl.String, "v": pl.Int64, "done": pl.Boolean, **columns}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def chunks_of(ingest, data, chunk_size=100):
    """After each chunk: its starts, what was promised, and the CTI if there is one."""
    found = []
    for chunk in ingest.chunks(data, chunk_size):
        promises = sorted(str(p) for p in chunk.promises)
        found.append((chunk.vs.tolist(), promises, None if chunk.cti == MIN else chunk.cti))
    return found


# --- rows of tables ------------------------------------------------------------------------------------------------


def test_a_row_that_is_a_punctuation_leaves_a_promise_and_no_event():
    rows = table((1, "a", 1, False), (5, "a", None, True), (3, "b", 2, None), (None, "b", 2, True))
    assert chunks_of(Ingest(source(punctuation="done")), rows) == [
        ([1, 3], ["no more k=a before 5", "no more k=b, v=2"], None)
    ]


def test_without_any_value_it_is_a_cti():
    rows = table((1, "a", 1, False), (7, None, None, True))
    assert chunks_of(Ingest(source(punctuation="done")), rows) == [([1], [], 7)]
    assert chunks_of(Ingest(source(punctuation="done")), table((None, None, None, True))) == [([], [], INF)]


def test_only_punctuations():
    rows = table((5, "a", None, True), (6, "a", None, True), (2, None, 3, True))
    assert chunks_of(Ingest(source(punctuation="done")), rows) == [
        ([], ["no more k=a before 6", "no more v=3 before 2"], None)
    ]


def test_a_row_that_breaks_a_promise_of_its_table_comes_after_it():
    # ts   4a  done a before 5   4b  4a  6a
    # cut                           |
    rows = table((4, "a", 1, False), (5, "a", None, True), (4, "b", 1, False), (4, "a", 1, False), (6, "a", 1, False))
    assert chunks_of(Ingest(source(punctuation="done")), rows) == [
        ([4, 4], ["no more k=a before 5"], None),
        ([4, 6], [], None),
    ]


def test_a_promise_goes_with_the_rows_before_it():
    rows = table((1, "a", 1, False), (5, "a", None, True), (2, "b", 1, False), (3, "b", None, True))
    assert chunks_of(Ingest(source(punctuation="done")), rows, 1) == [
        ([1], ["no more k=a before 5"], None),
        ([2], ["no more k=b before 3"], None),
    ]


def test_a_table_needs_a_column_of_truth_values():
    with pytest.raises(QueryError, match="'done' marks the rows that are punctuations, so it must be Boolean"):
        list(Ingest(source(punctuation="done")).chunks(table((1, "a", 1, "yes"), done=pl.String), 10))
    with pytest.raises(QueryError, match="no column 'done'"):
        list(Ingest(source(punctuation="done")).chunks(table((1, "a", 1, True)).drop("done"), 10))


records = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 5), st.none()),
        st.sampled_from(["a", "b", None]),
        st.sampled_from([1, 2, None]),
        st.booleans(),
        st.one_of(st.none(), st.none(), st.integers(0, 5)),
    ),
    max_size=8,
)


@given(records, st.integers(1, 4), st.booleans())
@example([(1, "a", 1, False, None), (5, "a", None, True, None), (1, "a", 1, False, None)], 1, False)
def test_rows_that_break_a_promise_are_those_a_stream_may_not_have(rows, chunk_size, guard):
    """Whatever the size of chunks, rows that break an earlier promise are late, and no others."""
    rows_with_promises = table(*rows, cti=pl.Int64)
    stream = cedr.source("s", SCHEMA, vs="ts", cti="cti", progress=cedr.Progress(punctuation="done"))
    query = stream if guard else stream.group_by("k").agg(n=cedr.sum("v"))
    result = query.run(rows_with_promises, chunk_size=chunk_size, close=False)
    elements = []
    for ts, k, v, done, cti in rows:
        if done:
            values = {name: value for name, value in (("k", k), ("v", v)) if value is not None}
            elements.append(punctuation(INF if ts is None else ts, **values))
        elif ts is not None:
            elements.append(Insert(ts, ts + 1, Row(k=k, v=v)))
        if cti is not None:
            elements.append(Cti(cti))
    wrong = [error.element for error in violations(forward(elements)) if isinstance(error.element, Insert)]
    late = result.late().filter(pl.col("reason") != "no_lifetime")
    found = late.select("vs", "k", "v").iter_rows() if late.height else []
    assert Counter(Insert(ts, ts + 1, Row(k=k, v=v)) for ts, k, v in found) == Counter(wrong)


def forward(elements):
    """Without CTIs below an earlier one; a source may repeat itself."""
    reached = MIN
    for e in elements:
        if isinstance(e, Cti):
            if e.t < reached:
                continue
            reached = e.t
        if not isinstance(e, Cti | Insert) and not e.attributes:
            reached = max(reached, e.before)
        yield e


# --- elements ------------------------------------------------------------------------------------------------------


def test_punctuations_among_elements():
    a = Row(k="a", v=1)
    elements = [Insert(1, 2, a), punctuation(5, k="a"), Insert(4, 5, a), punctuation(9), punctuation(v=Range(3, 4))]
    assert chunks_of(Ingest(source(vs=None)), elements) == [
        ([1], ["no more k=a before 5"], None),
        ([4], ["no more v=[3, 4]"], 9),
    ]
    result = cedr.source("s", SCHEMA).run(elements, close=False)
    assert result.late()["reason"].to_list() == ["below_punctuation"]
    assert [str(e) for e in result.elements()] == [
        "insert k=a, v=1 [1, 2)",
        "no more k=a before 5",
        "no more v=[3, 4]",
        "cti 9",
    ]


def test_what_a_cti_implies_is_not_promised():
    assert chunks_of(Ingest(source(vs=None)), [punctuation(3, k="a"), punctuation(7, k="b"), Cti(5)]) == [
        ([], ["no more k=b before 7"], 5)
    ]


def test_a_punctuation_must_be_about_columns_there_are_and_values_they_can_have():
    with pytest.raises(QueryError, match=r"no more key=1: source 's': no column 'key'"):
        chunks_of(Ingest(source(vs=None)), [punctuation(key=1)])
    with pytest.raises(PayloadError, match="a punctuation is about v='x', but v is Int64"):
        chunks_of(Ingest(source(vs=None)), [punctuation(v="x")])


def test_raising():
    a = Row(k="a", v=1)
    query = cedr.source("s", SCHEMA, late="raise")
    with pytest.raises(StreamError, match="it was promised: no more k=a before 5"):
        query.run([punctuation(5, k="a"), Insert(4, 5, a)])


# --- the progress of each key --------------------------------------------------------------------------------------


def test_each_key_has_its_own_progress():
    ingest = Ingest(source(progress_by="k", delay=2))
    assert chunks_of(ingest, table((10, "a", 1, None), (50, "b", 1, None), (4, "a", 1, None))) == [
        ([10, 50, 4], ["no more k=a before 8", "no more k=b before 48"], None)
    ]
    assert chunks_of(ingest, table((9, "a", 1, None), (60, "b", 1, None), (1, None, 1, None))) == [
        ([9, 60, 1], ["no more k=None before -1", "no more k=b before 58"], None)
    ], "only what is new is promised"


def test_keys_of_several_columns():
    ingest = Ingest(source(progress_by=["v", "k"], delay=0))
    assert chunks_of(ingest, table((10, "a", 1, None), (5, "a", 2, None))) == [
        ([10, 5], ["no more k=a, v=1 before 10", "no more k=a, v=2 before 5"], None)
    ]


def test_a_key_that_is_slow_holds_the_cti_back_and_a_silent_one_is_given_up():
    progress = SourceProgress(source(progress_by="k", delay=0, idle=1000))

    def update_with(at, **keys):
        highest = pl.DataFrame({"k": list(keys), HIGHEST: list(keys.values())})
        cti = progress.update([ProgressReport(keys=highest, at=at)])
        return cti, sorted(str(p) for p in progress.take_promises())

    assert update_with(0, a=10, b=5) == (5, ["no more k=a before 10"])
    assert update_with(1000, a=20) == (5, ["no more k=a before 20"]), "b may still have rows"
    assert update_with(1001, a=30, c=25) == (25, ["no more k=a before 30"]), "b is given up"
    assert update_with(1002, b=6) == (25, [])
    assert update_with(1003, a=40, c=40) == (25, ["no more k=a before 40", "no more k=c before 40"]), "b counts again"
    assert progress.table().rows() == [("b", 6, 6, 1002, 1), ("a", 40, 40, 1003, 0), ("c", 40, 40, 1003, 0)]
    assert progress.table(1)["k"].to_list() == ["b"]


def test_without_an_idle_time_keys_give_no_progress_of_the_whole():
    progress = SourceProgress(source(progress_by="k", delay=0))
    assert progress.update([ProgressReport(keys=pl.DataFrame({"k": ["a"], HIGHEST: [10]}), ctis={None: 3})]) == 3


def test_the_progress_of_partitions():
    progress = SourceProgress(source(delay=3, partition="p"))
    progress.update([ProgressReport({"x": 10, "y": 5}, at=7)])
    progress.update([ProgressReport({"x": 20}, at=9)])
    assert progress.table().rows() == [("y", 5, 2, 7, 2), ("x", 20, 17, 9, 0)]


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), max_size=5), max_size=5), st.randoms())
def test_the_same_reports_in_any_order_and_after_a_restart_give_the_same_promises(batches, order: random.Random):
    plan = cedr.source("s", {"k": int}, vs="ts", progress=cedr.Progress(by="k", idle=2), delay=3).plan
    one, two = SourceProgress(plan), SourceProgress(plan)
    ones, twos = PromiseIndex(), PromiseIndex()
    everyone = pl.DataFrame({"k": range(4)})
    for at, batch in enumerate(batches):
        reports = [ProgressReport(keys=pl.DataFrame({"k": [k], HIGHEST: [t]}), at=at) for k, t in batch]
        one.update(reports)
        restored = SourceProgress(plan)
        restored.restore(through_bytes(two.snapshot()))
        two = restored
        two.update(order.sample(reports, len(reports)))
        ones.add(one.take_promises())
        twos.add(two.take_promises())
        assert one.cti == two.cti
        assert ones.of(everyone).tolist() == twos.of(everyone).tolist()
    highest = {k: max(t for batch in batches for j, t in batch if j == k) for batch in batches for k, _ in batch}
    known = pl.DataFrame({"k": list(highest)}, schema={"k": pl.Int64})
    assert np.maximum(ones.of(known), one.cti).tolist() == [max(one.cti, t - 3) for t in highest.values()]


def test_keys_given_up_long_ago_are_forgotten():
    keys = KeyProgress({"k": pl.Int64()}, 0)
    for at in range(10):
        numbers = np.arange(at * 1000, (at + 1) * 1000)
        keys.update(pl.DataFrame({"k": numbers, HIGHEST: numbers}), at)
        keys.take_promises(MIN)
        keys.forget(cti=at * 1000, before=at)
    assert len(keys) < 5000
    assert keys.slowest(9) == 9000


# --- rows from the future ------------------------------------------------------------------------------------------

HOUR = 3_600_000_000
NOON = 12 * HOUR


def test_a_row_ahead_of_the_clock_is_put_aside_and_moves_nobody():
    ingest = Ingest(source(delay=0, max_ahead="1h"), clock=lambda: NOON)
    rows = table((NOON + HOUR, "a", 1, None), (NOON + HOUR + 1, "a", 2, None), (NOON, "a", 3, None))
    assert chunks_of(ingest, rows) == [([NOON + HOUR, NOON], [], NOON + HOUR)]
    late = ingest.late.take()
    assert late["v"].to_list() == [2]
    assert late["reason"].to_list() == ["from_the_future"]
    assert late["message"][0].endswith(f"it starts more than {HOUR} after {NOON}, when it arrived")


def test_nor_does_its_cti_count():
    ingest = Ingest(source(cti="c", max_ahead="1h"), clock=lambda: NOON)
    rows = table((1, "a", 1, None, 1), (NOON * 2, "a", 2, None, NOON * 2), (3, "a", 3, None, 2), c=pl.Int64)
    assert chunks_of(ingest, rows) == [([1, 3], [], 2)]


def test_timestamps_and_elements_from_the_future():
    stamps = table((NOON, "a", 1, None), (3 * NOON, "b", 1, None)).with_columns(pl.col("ts").cast(pl.Datetime("us")))
    ingest = Ingest(source(delay=0, max_ahead="1h"), clock=lambda: NOON)
    assert [chunk.vs.tolist() for chunk in ingest.chunks(stamps, 10)] == [[NOON]]
    elements = [Insert(NOON, NOON + 1, Row(k="a", v=1)), Insert(3 * NOON, INF, Row(k="a", v=1))]
    ingest = Ingest(source(vs=None, max_ahead="1h"), clock=lambda: NOON)
    assert chunks_of(ingest, elements) == [([NOON], [], None)]
    assert ingest.late.counts == {"from_the_future": 1}


def test_raising_for_rows_from_the_future():
    ingest = Ingest(source(max_ahead=5, late="raise"), clock=lambda: 0)
    with pytest.raises(StreamError, match="it starts more than 5 after 0"):
        chunks_of(ingest, table((6, "a", 1, None)))


def test_a_query_counts_them_as_late():
    query = (
        cedr.source("s", SCHEMA, vs="ts", delay=0, progress=cedr.Progress(max_ahead=10))
        .group_by("k")
        .agg(n=cedr.count())
    )
    run = LocalRun(query.fragment(), clock=lambda: 100)
    chunks = list(run.steps(table((100, "a", 1, None), (1000, "a", 1, None)), close=True))
    result = run.result(chunks)
    assert result.table()["n"].to_list() == [1]
    assert result.late()["reason"].to_list() == ["from_the_future"]


# --- declaring it --------------------------------------------------------------------------------------------------


def test_the_promises_that_a_source_declares():
    assert source(progress_by=["v", "k"], delay=0).promises == (("k", "v"),)
    assert source(promises="k").promises == (("k",),)
    assert source(promises=["k", ["v", "k"]], progress_by="k", delay=0).promises == (("k",), ("k", "v"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"progress_by": "key", "delay": 1}, r"source\('s'\): progress_by='key': no column 'key' \(columns: k, v\)"),
        ({"progress_by": "k"}, r"progress_by='k' needs delay, .* 0 if ordered"),
        ({"progress_by": "k", "ordered": True}, r"progress_by='k': ordered rows have one progress; .* delay=0"),
        ({"progress_by": "k", "delay": 1, "partition": "p"}, r"progress_by='k': give progress_by or partition='p'"),
        ({"idle": "1s"}, r"idle='1s' needs partition or progress_by"),
        ({"punctuation": "done", "vs": None}, r"punctuation='done' needs vs"),
        ({"promises": ["k", ["w"]]}, r"promises=\['k', \['w'\]\]: no column 'w'"),
        ({"promises": [[]]}, r"a promise about no column is a CTI"),
        ({"max_ahead": -1}, r"source\('s'\): max_ahead"),
    ],
)
def test_what_does_not_go_together(options, message):
    with pytest.raises((QueryError, cedr.CedrError), match=message):
        source(**options)


def test_promises_reach_the_answer():
    query = (
        cedr.source("s", SCHEMA, vs="ts", progress=cedr.Progress(by="k"), delay=0)
        .where(pl.col("v") > 0)
        .select("k", w="v")
    )
    result = query.run(table((1, "a", 1, None), (9, "b", 2, None)), close=False)
    emitted_promises = promises_of(
        [e for e in result.elements() if not isinstance(e, Insert | Cti)], {"k": pl.String, "w": pl.Int64}
    )
    assert emitted_promises.of(pl.DataFrame({"k": ["a", "b"]})).tolist() == [1, 9]
