"""Align: the same history, emitted later and with fewer retractions."""

from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import check_against_oracle, runs

from cedr.columnar.chunk import chunk_of
from cedr.operators.align import AlignOperator
from cedr.temporal import INF, MIN, Adjust, Cti, Insert, Row, canonical, ordered, perfect
from cedr.temporal.errors import QueryError
from cedr.temporal.stream import data, validate
from cedr.testing import assert_same, rows

SCHEMA = {"m": pl.Int64, "v": pl.Int64}
payloads = rows(m=st.integers(0, 1), v=st.one_of(st.none(), st.integers(0, 1)))
any_runs = st.one_of(runs(payloads), runs(payloads, ordered=True), runs(payloads, infinite=False, adjusts=False))
P, Q = Row(m=0, v=1), Row(m=1, v=None)


def identity(history):
    return history


def emitted(align, *slices):
    """The data elements that leave after each slice, as text, and the CTI after it."""
    found = []
    for elements in slices:
        out = align.process(0, chunk_of(elements, SCHEMA))
        found.append(([str(e) for e in data(out.elements())], align.cti_out))
    return found


# --- laws ----------------------------------------------------------------------------------------------------------


@given(any_runs)
def test_ordered_flavour_emits_the_same_in_order(run):
    out = check_against_oracle(lambda: AlignOperator(SCHEMA), identity, run[0], [SCHEMA], run[1])
    assert ordered(out)


@given(any_runs)
def test_perfect_flavour_emits_the_same_perfectly(run):
    out = check_against_oracle(lambda: AlignOperator(SCHEMA, flavour="perfect"), identity, run[0], [SCHEMA], run[1])
    assert perfect(out)


@given(runs(payloads), st.integers(0, 25), st.sampled_from(["ordered", "perfect"]))
def test_any_block_emits_the_same(run, block, flavour):
    check_against_oracle(lambda: AlignOperator(SCHEMA, block, flavour), identity, run[0], [SCHEMA], run[1])


@given(runs(payloads, max_size=4), st.integers(0, 6), st.sampled_from(["ordered", "perfect"]))
def test_any_block_by_the_clock_emits_the_same(run, block, flavour):
    now = iter(range(1000))
    check_against_oracle(
        lambda: AlignOperator(SCHEMA, block, flavour, clock=lambda: next(now)), identity, run[0], [SCHEMA], run[1]
    )


@given(runs(payloads))
def test_after_each_slice_the_output_cti_is_the_largest_one(run):
    # Ordered: the input's own. Perfect: that, or the earliest start that may still change.
    for flavour in ("ordered", "perfect"):
        align, cti, sent, out = AlignOperator(SCHEMA, flavour=flavour), MIN, [], []
        for _, elements in run[0]:
            sent += elements
            out += align.process(0, chunk_of(elements, SCHEMA)).elements()
            cti = max([cti, *(e.t for e in elements if isinstance(e, Cti))])
            held = canonical(sent) - canonical(out)
            assert align.cti_out == (cti if flavour == "ordered" else min([cti, *(e.vs for e in held)]))


@given(runs(payloads))
def test_after_a_cti_nothing_it_settles_is_held(run):
    align = AlignOperator(SCHEMA)
    for _, elements in run[0]:
        align.process(0, chunk_of(elements, SCHEMA))
        held = align.snapshot()["held"]
        assert (held.select(pl.min_horizontal("_ve_old", "_ve_new")).to_series() >= align.cti).all()
    assert align.state_size()[0] == 0


@given(runs(payloads))
def test_no_insert_of_ordered_output_is_removed_later(run):
    out = check_against_oracle(lambda: AlignOperator(SCHEMA), identity, run[0], [SCHEMA], run[1])
    assert not any(isinstance(e, Adjust) and e.removes for e in out)


@given(runs(payloads), st.integers(0, 25))
def test_longer_blocking_never_emits_more(run, block):
    def size(b):
        align = AlignOperator(SCHEMA, b)
        return sum(len(align.process(0, chunk_of(elements, SCHEMA))) for _, elements in run[0])

    assert size(INF) <= size(block) <= size(0) == sum(len(data(elements)) for _, elements in run[0])


@given(runs(payloads), st.integers(1, 25))
def test_nothing_is_held_longer_than_block(run, block):
    align, highest = AlignOperator(SCHEMA, block), MIN
    for _, elements in run[0]:
        align.process(0, chunk_of(elements, SCHEMA))
        highest = max([highest, *(e.vs for e in data(elements))])
        assert all(vs > highest - block for vs in align.snapshot()["held"]["_vs"])


# --- examples ------------------------------------------------------------------------------------------------------


def test_adjusts_are_worked_into_what_is_held():
    #          0  1  2  3  4  5  6  7
    # output   P ∞, then 6, then 3; Q and its removal
    # leaves      P ######
    assert emitted(
        AlignOperator(SCHEMA),
        [Insert(1, INF, P), Insert(1, 4, Q)],
        [Adjust(1, INF, 6, P)],
        [Adjust(1, 4, 1, Q), Adjust(1, 6, 3, P)],
        [Cti(2)],
    ) == [([], MIN)] * 3 + [(["insert m=0, v=1 [1, 3)"], 2)]


def test_ordered_releases_starts_before_the_cti_and_adjusts_when_their_sync_is_covered():
    assert emitted(
        AlignOperator(SCHEMA),
        [Insert(3, 9, P), Insert(1, INF, Q), Cti(3)],
        [Adjust(1, INF, 8, Q), Adjust(1, 8, 5, Q), Cti(5)],
        [Adjust(1, 5, 7, Q), Cti(6)],
        [Cti(8)],
    ) == [
        (["insert m=1, v=None [1, ∞)"], 3),
        (["insert m=0, v=1 [3, 9)"], 5),
        ([], 6),
        (["adjust m=1, v=None [1, ∞) to 7"], 8),
    ]


def test_a_held_adjust_is_adjusted_too():
    align = AlignOperator(SCHEMA)
    assert emitted(
        align,
        [Insert(1, INF, Q), Cti(2)],
        [Adjust(1, INF, 8, Q)],
        [Adjust(1, 8, 5, Q)],
        [Cti(6)],
    )[1:] == [([], 2), ([], 2), (["adjust m=1, v=None [1, ∞) to 5"], 6)]


def test_an_adjust_that_is_taken_back_vanishes():
    align = AlignOperator(SCHEMA)
    emitted(align, [Insert(1, 9, Q), Cti(2)], [Adjust(1, 9, 8, Q)], [Adjust(1, 8, 9, Q)])
    assert align.state_size()[0] == 0


def test_perfect_releases_when_the_end_is_covered():
    #       0  1  2  3  4  5  6  7
    # P        ######             settled by CTI 4, not by CTI 3: at 3 it could still grow
    # Q           ############
    align = AlignOperator(SCHEMA, flavour="perfect")
    assert emitted(align, [Insert(1, 3, P), Insert(2, 6, Q), Cti(3)], [Cti(4)], [Cti(9)]) == [
        ([], 1),
        (["insert m=0, v=1 [1, 3)"], 2),
        (["insert m=1, v=None [2, 6)"], 9),
    ]


def test_perfect_output_waits_for_the_event_before_it():
    align = AlignOperator(SCHEMA, flavour="perfect")
    assert emitted(align, [Insert(1, INF, P), Insert(2, 3, Q), Cti(9)], [Cti(INF)]) == [
        ([], 1),
        (["insert m=0, v=1 [1, ∞)", "insert m=1, v=None [2, 3)"], INF),
    ]


def test_block_in_application_time():
    # output time = highest start - 3
    assert emitted(
        AlignOperator(SCHEMA, block=3),
        [Insert(5, 9, P), Insert(4, 9, Q)],
        [Insert(7, 9, P)],
        [Adjust(4, 9, 6, Q)],
        [Insert(8, 9, P), Insert(1, 2, Q)],
    ) == [
        ([], MIN),
        (["insert m=1, v=None [4, 9)"], MIN),
        (["adjust m=1, v=None [4, 9) to 6"], MIN),
        (["insert m=1, v=None [1, 2)", "insert m=0, v=1 [5, 9)"], MIN),
    ]


def test_block_in_system_time_and_tick():
    time = [100]
    align = AlignOperator(SCHEMA, block=10, clock=lambda: time[0])
    assert emitted(align, [Insert(5, 9, P)])[0][0] == []
    time[0] = 105
    assert emitted(align, [Insert(6, 9, Q)])[0][0] == []
    time[0] = 109
    assert len(align.tick()) == 0
    time[0] = 110
    assert [str(e) for e in align.tick().elements()] == ["insert m=0, v=1 [5, 9)"]
    assert emitted(align, [Adjust(5, 9, 8, P)])[0][0] == ["adjust m=0, v=1 [5, 9) to 8"]
    time[0] = 115
    assert [str(e) for e in align.tick().elements()] == ["insert m=1, v=None [6, 9)"]
    assert align.metrics.rows_out == 3
    assert align.metrics.state_rows == 0


def test_restored_it_knows_what_has_left():
    time = [100]
    one, two = (AlignOperator(SCHEMA, block=10, clock=lambda: time[0]) for _ in range(2))
    emitted(one, [Insert(5, 9, P)])
    time[0] = 110
    assert len(one.tick()) == 1
    two.restore(one.snapshot())
    assert emitted(two, [Adjust(5, 9, 8, P), Insert(6, 9, Q)])[0][0] == ["adjust m=0, v=1 [5, 9) to 8"]
    time[0] = 120
    assert len(two.tick()) == 1


def test_without_payload():
    align = AlignOperator({})
    elements = [Insert(1, 9, Row()), Insert(2, 9, Row()), Adjust(1, 9, 4, Row()), Cti(3)]
    assert align.process(0, chunk_of(elements, {})).elements() == [Insert(1, 4, Row()), Insert(2, 9, Row()), Cti(3)]


def test_block_0_passes_everything_at_once():
    elements = [Insert(5, 9, P), Insert(3, 9, Q), Adjust(5, 9, 8, P), Cti(2)]
    out = AlignOperator(SCHEMA, block=0).process(0, chunk_of(elements, SCHEMA))
    assert out.elements() == elements


def test_held_rows_stay_few_pieces_and_are_gone_after_their_cti():
    align = AlignOperator(SCHEMA)
    out = []
    for t in range(500):
        out += align.process(0, chunk_of([Insert(t, t + 5, P), Cti(t - 3)], SCHEMA)).elements()
        assert align.state_size()[0] <= 5
    for t in range(500, 1000):
        align.process(0, chunk_of([Insert(t, t + 5, P)], SCHEMA))
    assert align.state_size()[0] > 500
    assert align.snapshot()["held"].n_chunks() == 1
    assert all(a.sync <= b.sync for a, b in pairwise(out))


@pytest.mark.parametrize(("settings", "message"), [({"block": -1}, "block is -1"), ({"flavour": "best"}, "'best'")])
def test_settings_are_checked(settings, message):
    with pytest.raises(QueryError, match=message):
        AlignOperator(SCHEMA, **settings)


@st.composite
def wandering(draw):
    """Tuples with one start and payload that wander between few ends: copies, cycles, removals."""
    ends, elements = [], []
    for move, which, to in draw(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(5, 7)), max_size=25)
    ):
        if move == 0 or not ends:
            ends.append(to)
            elements.append(Insert(1, to, P))
            continue
        old = ends.pop(which % len(ends))
        new = to if move < 3 else 1
        ends += [new] if new != 1 else []
        elements += [Adjust(1, old, new, P)] if old != new else []
    return elements


@given(wandering(), st.sampled_from([1, INF]), st.integers(1, 5))
def test_long_chains_of_equal_tuples(elements, block, size):
    align, out = AlignOperator(SCHEMA, block), []
    for i in range(0, len(elements), size):
        out += align.process(0, chunk_of(elements[i : i + size], SCHEMA)).elements()
    out += align.process(0, chunk_of([Cti(INF)], SCHEMA)).elements()
    validate(out)
    assert_same(canonical(out), canonical(elements))
