"""Streams: what makes them valid, the errors when they are not, and the history they describe."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr import testing
from cedr.temporal import (
    END,
    INF,
    MIN,
    Adjust,
    Cti,
    ExternalCti,
    History,
    Insert,
    Relation,
    StreamError,
    canonical,
    closed_up_to,
    equivalent,
    ordered,
    relations,
    retract,
    stream_table,
    up_to,
    validate,
    violations,
)
from cedr.temporal.stream import chains, data, timed

# --- every broken promise is named ---------------------------------------------------------------------------------

BROKEN = {
    "adjust of a tuple that never was": (
        [Adjust(1, 5, 3, "A")],
        "element 0, adjust A [1, 5) to 3: there is no tuple A [1, 5) to adjust; it was never inserted, or was removed",
    ),
    "adjust of a tuple that was removed": (
        [Insert(1, 5, "A"), retract(1, 5, "A"), Adjust(1, 5, 3, "A")],
        "element 2, adjust A [1, 5) to 3: there is no tuple A [1, 5) to adjust; it was never inserted, or was removed",
    ),
    "adjust of another end": (
        [Insert(1, 9, "A"), Insert(1, INF, "A"), Adjust(1, 5, 3, "A")],
        "element 2, adjust A [1, 5) to 3: there is no tuple A [1, 5) to adjust; "
        "with this start and payload there are only ends at 9, ∞",
    ),
    "adjust of another start": (
        [Insert(2, 5, "A"), Adjust(1, 5, 3, "A")],
        "element 1, adjust A [1, 5) to 3: there is no tuple A [1, 5) to adjust; it was never inserted, or was removed",
    ),
    "adjust of another payload": (
        [Insert(1, 5, "B"), Adjust(1, 5, 3, "A")],
        "element 1, adjust A [1, 5) to 3: there is no tuple A [1, 5) to adjust; it was never inserted, or was removed",
    ),
    "second adjust of a single tuple": (
        [Insert(1, 5, "A"), Adjust(1, 5, 3, "A"), Adjust(1, 5, 3, "A")],
        "element 2, adjust A [1, 5) to 3: there is no tuple A [1, 5) to adjust; "
        "with this start and payload there are only ends at 3",
    ),
    "insert below a CTI": (
        [Cti(6), Insert(5, 9, "A")],
        "element 1, insert A [5, 9): its sync time 5 lies before 6, "
        "but cti 6 promised that nothing before it would come",
    ),
    "retraction below a CTI": (
        [Insert(1, 9, "A"), Cti(6), Adjust(1, 9, 5, "A")],
        "element 2, adjust A [1, 9) to 5: its sync time 5 lies before 6, "
        "but cti 6 promised that nothing before it would come",
    ),
    "growth below a CTI": (
        [Insert(1, 5, "A"), Cti(6), Adjust(1, 5, 9, "A")],
        "element 2, adjust A [1, 5) to 9: its sync time 5 lies before 6, "
        "but cti 6 promised that nothing before it would come",
    ),
    "CTI that goes backwards": (
        [Cti(6), Cti(5)],
        "element 1, cti 5: its sync time 5 lies before 6, but cti 6 promised that nothing before it would come",
    ),
    "anything after the end": (
        [END, Insert(5, 9, "A")],
        "element 1, insert A [5, 9): its sync time 5 lies before ∞, "
        "but cti ∞ promised that nothing before it would come",
    ),
    "external CTIs that overlap": (
        [ExternalCti(0, 8, 5), ExternalCti(7, 9, 1)],
        "element 1, external cti [7, 9) of 1: it overlaps external cti [0, 8) of 5; "
        "spans of external CTIs must not share an instant",
    ),
    "external CTI that counts too few": (
        [Insert(1, 5, "A"), Insert(2, 5, "A"), ExternalCti(0, 8, 1)],
        "element 2, external cti [0, 8) of 1: it promises 1 elements with a sync time in [0, 8), but 2 came already",
    ),
    "one more than an external CTI counts": (
        [ExternalCti(0, 8, 1), Insert(1, 5, "A"), Insert(7, 9, "B")],
        "element 2, insert B [7, 9): external cti [0, 8) of 1 promised no more than 1 elements "
        "with a sync time in it, all came before",
    ),
}


@pytest.mark.parametrize(("stream", "text"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_promise_is_reported_with_element_place_and_promise(stream, text):
    with pytest.raises(StreamError) as caught:
        validate(stream)
    assert str(caught.value) == text
    assert caught.value.element == stream[-1]
    assert caught.value.position == len(stream) - 1
    assert text.endswith(caught.value.promise)


@pytest.mark.parametrize("stream", [stream for stream, _ in BROKEN.values()], ids=BROKEN.keys())
def test_a_bad_element_leaves_the_relation_as_it_was(stream):
    relation, undisturbed = Relation(), Relation()
    for element in stream[:-1]:
        relation.apply(element)
        undisturbed.apply(element)
    with pytest.raises(StreamError):
        relation.apply(stream[-1])
    assert relation.history() == undisturbed.history()
    assert relation.cti == undisturbed.cti


@given(testing.streams(), st.data())
def test_bad_elements_anywhere_change_nothing_but_the_positions(stream, choice):
    unknown = Adjust(0, 50, 49, "never inserted")
    place = choice.draw(st.integers(0, len(stream)))
    spoilt = [*stream[:place], unknown, *stream[place:]]
    found = violations(spoilt)
    assert [(error.element, error.position) for error in found] == [(unknown, place)]
    with pytest.raises(StreamError, match=re.escape(f"element {place}, {unknown}")):
        canonical(spoilt)


def test_a_refused_element_does_not_count_for_an_external_cti():
    stream = [ExternalCti(0, 8, 1), Adjust(1, 5, 3, "A"), Insert(1, 5, "A")]
    assert [error.position for error in violations(stream)] == [1]


def test_a_refused_external_cti_promises_nothing():
    stream = [ExternalCti(0, 8, 5), ExternalCti(7, 9, 0), Insert(8, 9, "A")]
    assert [error.position for error in violations(stream)] == [1]


# --- what is allowed, just so --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stream",
    [
        [],
        [Cti(5), Insert(5, 9, "A")],
        [Cti(5), Cti(5)],
        [Insert(1, 5, "A"), Cti(5), Adjust(1, 5, 9, "A")],
        [Insert(1, 9, "A"), Cti(5), Adjust(1, 9, 5, "A")],
        [Insert(5, 9, "A"), Cti(5), retract(5, 9, "A")],
        [Insert(1, 5, "A"), Insert(1, 5, "A"), retract(1, 5, "A"), retract(1, 5, "A")],
        [Insert(1, 5, "A"), Adjust(1, 5, 9, "A"), Adjust(1, 9, 5, "A")],
        [ExternalCti(0, 8, 0), ExternalCti(8, 9, 0)],
        [ExternalCti(8, 9, 1), ExternalCti(0, 8, 1), Insert(8, 9, "A"), Insert(7, 8, "A")],
        [Insert(1, 5, "A"), ExternalCti(0, 8, 1)],
        [END, END],
    ],
)
def test_streams_at_the_edge_of_their_promises_are_valid(stream):
    assert violations(stream) == []


def test_one_copy_is_adjusted_and_the_other_stays():
    stream = [Insert(1, 5, "A"), Insert(1, 5, "A"), Adjust(1, 5, 3, "A")]
    assert canonical(stream) == History([(1, 3, "A"), (1, 5, "A")])


# --- the history ---------------------------------------------------------------------------------------------------


def test_canonical_works_all_adjusts_in():
    #      1  2  3  4  5  6
    # A    ############         inserted
    # A    ###---------         then shorter
    # A    ###++++++++++++      then longer
    stream = [Insert(1, 5, "A"), Adjust(1, 5, 2, "A"), Adjust(1, 2, 7, "A")]
    assert canonical(stream) == History([(1, 7, "A")])


@given(testing.streams())
def test_relations_are_the_canonical_histories_of_the_prefixes(stream):
    assert list(relations(stream)) == [canonical(stream[: i + 1]) for i in range(len(stream))]


@given(testing.streams())
def test_a_new_element_changes_no_instant_before_its_sync_time(stream):
    before = History()
    for element, after in zip(stream, relations(stream), strict=True):
        assert after.to(element.sync) == before.to(element.sync)
        before = after


@given(testing.streams(), st.data())
def test_nothing_after_a_cti_changes_what_lies_before_it(stream, choice):
    seen = stream[: choice.draw(st.integers(0, len(stream)))]
    assert canonical(seen).to(closed_up_to(seen)) == canonical(stream).to(closed_up_to(seen))


@given(testing.same_history(), st.integers(0, 45))
def test_equivalent_streams_are_equivalent_to_and_at_every_time(pair, t):
    assert equivalent(*pair)
    assert equivalent(*pair, to=t)
    assert equivalent(*pair, at=t)


@given(testing.streams(max_size=3), testing.streams(max_size=3), st.integers(0, 45))
def test_streams_equivalent_to_a_time_are_equivalent_to_every_earlier_one(one, two, t):
    if equivalent(one, two, to=t):
        assert all(equivalent(one, two, to=s) and equivalent(one, two, at=s) for s in range(t))


# --- views of a stream ---------------------------------------------------------------------------------------------


MIXED = [Insert(1, 5, "A"), Cti(1), ExternalCti(0, 8, 3), Adjust(1, 5, 9, "A"), Insert(6, 7, "B")]


def test_data_and_timed_leave_out_what_they_must():
    assert data(MIXED) == [MIXED[0], MIXED[3], MIXED[4]]
    assert timed(MIXED) == [MIXED[0], MIXED[1], MIXED[3], MIXED[4]]


def test_external_ctis_do_not_disturb_order():
    assert ordered(MIXED)


def test_up_to_keeps_the_elements_with_earlier_sync_time():
    assert up_to(MIXED, 6) == [MIXED[0], MIXED[1], MIXED[3]]
    assert up_to(MIXED, 5) == [MIXED[0], MIXED[1]]
    assert up_to(MIXED, MIN) == []


def test_chains_tie_inserts_to_their_adjusts():
    stream = [Insert(1, 9, "A"), Insert(2, 9, "B"), Adjust(1, 9, 5, "A"), Cti(2), Adjust(1, 5, 3, "A")]
    assert chains(stream) == [[stream[0], stream[2], stream[4]], [stream[1]]]


def test_among_equal_tuples_the_oldest_is_adjusted_first():
    stream = [Insert(1, 9, "A"), Insert(1, 9, "A"), Adjust(1, 9, 5, "A"), Adjust(1, 9, 3, "A")]
    assert chains(stream) == [[stream[0], stream[2]], [stream[1], stream[3]]]


@given(testing.streams())
def test_chains_hold_every_element_once_and_end_in_the_history(stream):
    found = chains(stream)
    assert sorted(map(str, data(stream))) == sorted(str(e) for chain in found for e in chain)
    ends = [(c[0].vs, c[-1].ve if isinstance(c[-1], Insert) else c[-1].ve_new, c[0].payload) for c in found]
    assert History(e for e in ends if e[0] < e[1]) == canonical(stream)


def test_a_stream_prints_with_all_kinds_of_elements():
    assert stream_table([*MIXED, Adjust(1, 9, 1, "A"), END]).splitlines() == [
        "Type         Vs  Ve  Vnewe  (Payload)",
        "Insert        1   5         A",
        "CTI           1",
        "ExternalCTI   0   8         3",
        "Extend        1   5      9  A",
        "Insert        6   7         B",
        "Retract       1   9      1  A",
        "CTI           ∞",
    ]
