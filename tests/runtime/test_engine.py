"""The engine: chunks through a plan, saved, restored, and moved to another consistency level."""

import contextlib
import pickle

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import arrivals_of
from plan.catalogue import QUERIES, SCHEMA, a, diamond, few, payloads
from storage.through_bytes import through_bytes

import cedr
from cedr import testing
from cedr.columnar.chunk import chunk_of, empty
from cedr.runtime import change_level
from cedr.runtime.engine import Engine
from cedr.temporal import (
    INF,
    MIDDLE,
    STRONG,
    WEAK,
    Adjust,
    Consistency,
    Cti,
    Insert,
    QueryError,
    Row,
    canonical,
    ordered,
    validate,
)
from cedr.temporal.stream import data as data_of

LEVELS = st.sampled_from([STRONG, MIDDLE, Consistency(4, INF)])


def push(engine, port, elements):
    return engine.push("ab"[port], chunk_of(elements, SCHEMA)).elements()


def test_an_unknown_source_is_named():
    with pytest.raises(QueryError, match="this query has no source 'x'; its sources are 'a'"):
        a().engine().push("x", empty(SCHEMA))


def test_shared_plans_run_once():
    engine = diamond(a().group_by("m").agg(n=cedr.count())).engine()
    push(engine, 0, [Insert(1, 5, Row(m=1, v=1)), Cti(9)])
    metrics = engine.metrics()
    assert metrics.filter(pl.col("operator") == "Aggregate")["rows_in"].to_list() == [1]
    assert metrics.filter(pl.col("operator") == "Join")["rows_in"].to_list() == [1]


def test_a_snapshot_fits_its_own_query_only():
    state = a().distinct().engine().snapshot()
    with pytest.raises(QueryError, match="the snapshot is of another query"):
        a().agg(n=cedr.count()).engine().restore(state)


def test_metrics_and_late_rows_survive_a_restore():
    stream = a().where(pl.col("v") > 0)
    engine = stream.engine()
    push(engine, 0, [Insert(5, 9, Row(m=1, v=1)), Cti(5)])
    push(engine, 0, [Insert(1, 9, Row(m=1, v=1))])
    again = stream.engine()
    again.restore(through_bytes(engine.snapshot()))
    assert again.metrics().equals(engine.metrics())
    assert again.take_late().equals(engine.take_late())
    assert engine.take_late().height == 0


def test_fragments_can_be_sent_elsewhere():
    fragment = pickle.loads(pickle.dumps(QUERIES["aggregate"].stream().fragment()))
    assert push(Engine(fragment), 0, [Insert(1, 2, Row(m=1, v=1)), Cti(INF)])


def test_a_clock_sets_rows_free():
    now = 0
    engine = a().align(10, clock=lambda: now).agg(n=cedr.count()).engine()
    assert push(engine, 0, [Insert(1, 5, Row(m=1, v=1))]) == []
    now = 10
    engine.tick()
    assert engine.metrics()["rows_in"][-1] == 1


# --- changing the level --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUERIES)
@few
@given(data=st.data())
def test_a_query_may_change_its_level(name, data):
    """Whatever the levels and whenever they change, the stream stays valid and the answer right."""
    query = QUERIES[name]
    options = {"infinite": query.infinite, "adjusts": query.infinite, "closed": True}
    streams = [data.draw(testing.streams(payloads, max_size=5, **options)) for _ in range(query.ports)]
    stream = query.stream().with_latency(data.draw(st.sampled_from(["perfect", "ordered", "eager"])))
    engine = stream.with_consistency(data.draw(LEVELS)).engine()
    out = []
    for port, elements in data.draw(arrivals_of(streams)):
        if data.draw(st.integers(0, 3)) == 3:
            out += stream.change_level(engine, data.draw(LEVELS)).elements()
        out += push(engine, port, elements)
    validate(out)
    testing.assert_same(canonical(out), query.oracle(*map(canonical, streams)))


@pytest.mark.parametrize("name", QUERIES)
@few
@given(data=st.data())
def test_a_change_of_level_that_fails_changes_nothing(name, data):
    """Whichever operator refuses, the query goes on as one that was never asked."""
    query = QUERIES[name]
    options = {"infinite": query.infinite, "adjusts": query.infinite, "closed": True}
    streams = [data.draw(testing.streams(payloads, max_size=5, **options)) for _ in range(query.ports)]
    stream = query.stream().with_consistency(data.draw(LEVELS))
    asked, never_asked = stream.engine(), stream.engine()
    for port, elements in data.draw(arrivals_of(streams)):
        refuse_change(stream, asked, data.draw(LEVELS), data.draw(st.integers(0, 5)))
        assert push(asked, port, elements) == push(never_asked, port, elements)


def refuse_change(stream, engine, level, accepted):
    """A change in which this number of steps of the move succeeds, and the next fails."""
    calls = iter(range(accepted))

    def fail_in_time(function):
        def called(*arguments):
            if next(calls, None) is None:
                raise QueryError("refused")
            return function(*arguments)

        return called

    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(QueryError):
        patch.setattr(change_level, "hand_over", fail_in_time(change_level.hand_over))
        patch.setattr(change_level.Mover, "enter", fail_in_time(change_level.Mover.enter))
        patch.setattr(Engine, "_answer", fail)
        stream.change_level(engine, level)


def fail(*_):
    raise QueryError("refused at the end")


def test_to_strong_and_back():
    """Held rows stay held when the query becomes strong, and leave when it becomes middle again."""
    query = a().distinct().with_latency("eager")
    engine = query.engine()
    first, second, third = (Row(m=i, v=i) for i in range(3))
    assert push(engine, 0, [Insert(1, 9, first)]) == [Insert(1, 9, first)]
    assert query.change_level(engine, "strong").elements() == []
    assert push(engine, 0, [Insert(5, 9, second), Insert(3, 9, third)]) == []
    freed = query.change_level(engine, MIDDLE).elements()
    assert freed == [Insert(3, 9, third), Insert(5, 9, second)]
    assert push(engine, 0, [Adjust(1, 9, 4, first)]) == [Adjust(1, 9, 4, first)]


@few
@given(st.data())
def test_at_a_sync_point_strong_is_as_if_always_strong(data):
    """From the change on, what is put out is in order, and no earlier than what was known."""
    early = data.draw(testing.streams(payloads, max_size=4, max_time=10))
    late = [moved(e, 100) for e in data.draw(testing.streams(payloads, max_size=4, ctis=True, closed=True))]
    query = a().where(pl.col("v") > 0).agg(n=cedr.count())
    engine = query.engine()
    push(engine, 0, early)
    freed = query.change_level(engine, STRONG).elements()
    rest = [e for element in late for e in push(engine, 0, [element])]
    always = query.with_consistency(STRONG).engine()
    push(always, 0, early)
    expected = [e for element in late for e in push(always, 0, [element])]
    assert ordered(data_of(rest))
    assert data_of(freed) == []
    assert canonical([e for e in rest if is_from(e, 100)]) == canonical([e for e in expected if is_from(e, 100)])


def moved(e, by):
    match e:
        case Insert(vs, ve, p):
            return Insert(vs + by, ve if ve == INF else ve + by, p)
        case Adjust(vs, ve, new, p):
            return Adjust(vs + by, ve if ve == INF else ve + by, new if new == INF else new + by, p)
    return e if e.t == INF else Cti(e.t + by)


def is_from(e, t):
    return isinstance(e, Insert | Adjust) and e.vs >= t


def test_weak_forgets_and_reports_it():
    query = a().distinct()
    engine = query.engine()
    query.change_level(engine, WEAK)
    push(engine, 0, [Insert(5, 9, Row(m=1, v=1))])
    assert push(engine, 0, [Insert(1, 2, Row(m=1, v=1))]) == []
    assert engine.take_late()["reason"].to_list() == ["forgotten"]
    with pytest.raises(QueryError, match="change_level needs a level"):
        query.change_level(engine)
