"""Every store holds the canonical history after every batch, whatever happens between and during batches."""

import pickle

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan.catalogue import payloads
from polars.testing import assert_frame_equal
from sinks.places import SCHEMA, by_shard, history_of, in_shard, opened, send

from cedr import sinks, testing
from cedr.columnar.chunk import chunk_of
from cedr.columnar.tally import Tally
from cedr.sinks.base import SinkError, SinkTable
from cedr.temporal import INF, Adjust, Cti, Insert, QueryError, Row, canonical

some = settings(max_examples=settings.default.max_examples // 2)
few = settings(max_examples=settings.default.max_examples // 6)
"""For the stores that take their time."""

ACCIDENTS = st.sampled_from(["none", "none", "commit again", "prepare elsewhere", "not committed", "restart"])
RUNS = {
    "slices": testing.streams(payloads, max_size=8).flatmap(testing.slicings),
    "shards": st.integers(1, 3),
    "accidents": st.lists(ACCIDENTS, min_size=1),
}


@some
@given(**RUNS)
def test_the_table_is_the_history_after_every_batch(quick_place, slices, shards, accidents):
    run_with_accidents(quick_place(), slices, shards, accidents)


@few
@given(**RUNS)
def test_the_table_is_the_history_after_every_batch_in_databases(sql_place, slices, shards, accidents):
    run_with_accidents(sql_place(), slices, shards, accidents)


def run_with_accidents(here, slices, shards, accidents):
    table = SinkTable("q", SCHEMA, shards=shards)
    sink = opened(here, table)
    workers, seen, tally = [in_shard(sink) for _ in range(shards)], [], Tally(SCHEMA)
    for batch, elements in enumerate(slices):
        chunks = by_shard(elements, shards)
        accident = accidents[batch % len(accidents)]
        if accident in ("prepare elsewhere", "not committed"):  # a task or the driver failed after the shards' work
            for shard, worker in enumerate(workers):
                worker.prepare(shard, batch, chunks[shard])
        if accident == "prepare elsewhere":
            send(sink, batch, chunks)
        if accident == "not committed":
            sink = opened(here, table)
            workers = [in_shard(sink) for _ in range(shards)]
        send(sink, batch, chunks, workers)
        if accident == "commit again":  # the driver died before it noted the commit
            send(sink, batch, chunks, workers)
        if accident == "restart":
            sink = opened(here, table)
            workers = [in_shard(sink) for _ in range(shards)]
            assert sink.last_batch() == batch
        seen += elements
        tally.add(chunk_of(elements, SCHEMA))
        found = sink.read()
        assert history_of(table, found) == canonical(seen)
        assert_frame_equal(found, table.ordered(tally.copy().table()))


A, B = Row(m=1, v=None), Row(m=2, v=2)


def test_equal_tuples_of_different_shards_are_copies(place):
    sink = opened(place(), SinkTable("q", SCHEMA, shards=2))
    send(sink, 0, [chunk_of([Insert(1, 5, A)], SCHEMA), chunk_of([Insert(1, 5, A), Insert(2, INF, B)], SCHEMA)])
    assert sink.read().rows() == [(1, 5, 1, None), (1, 5, 1, None), (2, None, 2, 2)]
    send(sink, 1, [chunk_of([], SCHEMA), chunk_of([Adjust(1, 5, 3, A)], SCHEMA)])
    assert sink.read().rows() == [(1, 3, 1, None), (1, 5, 1, None), (2, None, 2, 2)]
    send(sink, 2, [chunk_of([Adjust(1, 5, 1, A)], SCHEMA), chunk_of([Adjust(1, 3, 1, A)], SCHEMA)])
    assert sink.read().rows() == [(2, None, 2, 2)]


def test_an_end_at_the_progress_may_still_change(place):
    """CTI 5: a tuple that ends at 4 is settled, one that ends at 5 may still grow (its sync time is 5)."""
    sink = opened(place(), SinkTable("q", SCHEMA))
    send(sink, 0, [chunk_of([Insert(1, 4, A), Insert(1, 5, A), Cti(5)], SCHEMA)])
    send(sink, 1, [chunk_of([Adjust(1, 5, 9, A)], SCHEMA)])
    assert sink.read()["ve"].to_list() == [4, 9]


def test_what_was_never_there_cannot_be_taken_away(place):
    sink = opened(place(), SinkTable("q", SCHEMA))
    send(sink, 0, [chunk_of([Insert(1, 5, B)], SCHEMA)])
    with pytest.raises(SinkError, match=r"1 tuple.s. are removed more often than they exist"):
        send(sink, 1, [chunk_of([Insert(0, 9, A), Adjust(1, 5, 3, B), Adjust(1, 7, 3, B)], SCHEMA)])
    assert sink.last_batch() == 0
    assert sink.read().rows() == [(1, 5, 2, 2)], "nothing of the batch was kept"
    send(sink, 1, [chunk_of([Adjust(1, 5, 3, B)], SCHEMA)])
    assert sink.read().rows() == [(1, 3, 2, 2)]


def test_a_gap_between_batches_is_refused(place):
    sink = opened(place(), SinkTable("q", SCHEMA))
    with pytest.raises(SinkError, match="has no batch yet, so batch 0 must follow, but got batch 3"):
        send(sink, 3, [chunk_of([], SCHEMA)])
    send(sink, 0, [chunk_of([], SCHEMA)])
    with pytest.raises(SinkError, match="has batch 0 as its last, so batch 1 must follow"):
        send(sink, 2, [chunk_of([], SCHEMA)])


def test_a_table_may_begin_with_a_later_batch(place):
    sink = opened(place(), SinkTable("q", SCHEMA, first_batch=7))
    send(sink, 7, [chunk_of([Insert(1, 5, A)], SCHEMA)])
    assert sink.read().height == 1


def test_empty_tables_are_tables(place):
    sink = opened(place(), SinkTable("q", SCHEMA, pl.Datetime("us", "UTC")))
    assert sink.last_batch() is None
    assert sink.read().schema == {"vs": pl.Datetime("us", "UTC"), "ve": pl.Datetime("us", "UTC"), **SCHEMA}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (SinkTable("p", SCHEMA), "belongs to another query or checkpoint .it was created by 'q', this is 'p'."),
        (
            SinkTable("q", {"m": pl.Int64(), "v": pl.String()}),
            "has the columns .* v: Int64, but the query emits .* v: String",
        ),
        (SinkTable("q", SCHEMA, pl.Datetime("us")), "has the columns vs: Int64"),
    ],
)
def test_a_table_of_something_else_is_refused(place, other, message):
    here = place()
    opened(here, SinkTable("q", SCHEMA))
    with pytest.raises(SinkError, match=message):
        opened(here, other)


def test_names_that_the_payload_has_get_an_underscore(place):
    schema = {"vs": pl.Int64(), "copies": pl.Int64(), "cedr_id": pl.String(), 'a "b"': pl.Int64()}
    sink = opened(place(), SinkTable("q", schema))
    row = Row({"vs": 7, "copies": 8, "cedr_id": "x", 'a "b"': 9})
    send(sink, 0, [chunk_of([Insert(1, 5, row), Insert(1, 5, row)], schema)])
    assert sink.read().columns == ["_vs", "ve", "vs", "copies", "cedr_id", 'a "b"']
    assert sink.read().rows() == [(1, 5, 7, 8, "x", 9)] * 2


def test_names_of_our_own_are_refused():
    with pytest.raises(QueryError, match="a column '_n', a name that sinks reserve"):
        SinkTable("q", {"_n": pl.Int64()})


def test_stored_tables_can_be_read_without_the_query(stored_place):
    here = stored_place()
    with pytest.raises(SinkError, match="does not exist yet"):
        here.sink().read()
    sink = opened(here, SinkTable("q", SCHEMA))
    send(sink, 0, [chunk_of([Insert(1, 5, B)], SCHEMA)])
    assert here.sink().read().rows() == [(1, 5, 2, 2)]


def test_memory_is_gone_with_the_driver():
    sink = sinks.memory()
    with pytest.raises(SinkError, match="does not exist yet"):
        sink.read()
    sink.open(SinkTable("q", SCHEMA))
    send(sink, 0, [chunk_of([Insert(1, 5, B)], SCHEMA)])
    again = sinks.memory()
    again.open(SinkTable("q", SCHEMA))
    with pytest.raises(SinkError, match="batch 0 must follow, but got batch 1"):
        send(again, 1, [chunk_of([], SCHEMA)])


def test_foreach_gets_every_change():
    got = []
    sink = sinks.foreach(lambda batch, changes: got.append((batch, changes)))
    sink.open(SinkTable("q", SCHEMA, shards=2))
    assert pickle.loads(pickle.dumps(sink)).function is None, "the function stays, so any function will do"
    first = [chunk_of([Insert(1, 5, A)], SCHEMA), chunk_of([Insert(1, INF, B), Adjust(1, INF, 1, B)], SCHEMA)]
    send(sink, 0, first)
    send(sink, 0, first)
    send(sink, 1, [chunk_of([Adjust(1, 5, 3, A)], SCHEMA), chunk_of([], SCHEMA)])
    assert [batch for batch, _ in got] == [0, 1]
    assert got[0][1].columns == ["change", "vs", "ve", "ve_new", "m", "v"]
    assert got[0][1].rows() == [
        ("insert", 1, 5, None, 1, None),
        ("insert", 1, None, None, 2, 2),
        ("remove", 1, None, 1, 2, 2),
    ]
    assert got[1][1].rows() == [("adjust", 1, 5, 3, 1, None)]
    with pytest.raises(SinkError, match="has no table"):
        sink.read()


def test_a_function_that_fails_gets_the_batch_again():
    got = []

    def fussy(batch, changes):
        got.append(batch)
        if len(got) == 1:
            raise OSError("no room")

    sink = sinks.foreach(fussy)
    sink.open(SinkTable("q", SCHEMA))
    with pytest.raises(OSError, match="no room"):
        send(sink, 4, [chunk_of([], SCHEMA)])
    send(sink, 4, [chunk_of([], SCHEMA)])
    assert got == [4, 4]
