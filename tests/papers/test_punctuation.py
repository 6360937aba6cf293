"""Punctuation semantics in continuous streams: the sliced lists of section 2.1. Punctuations need an engine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr import testing
from cedr.temporal import Cti, History, Insert, canonical
from cedr.temporal.slices import joined, prefix

SLICINGS_OF_1_TO_5 = [
    [[1, 2], [3], [], [4, 5]],
    [[1, 2, 3], [4, 5]],
    [[1], [2], [3], [4], [5]],
    [[], [], [1, 2, 3, 4, 5], []],
]


@pytest.mark.parametrize("slices", SLICINGS_OF_1_TO_5)
def test_one_stream_has_many_slicings(slices):
    assert joined(slices) == [1, 2, 3, 4, 5]


def test_s_i_is_the_concatenation_of_the_first_i_slices():
    #  slice   1        2     3        4
    #        [1, 2]   [3]   [4, 5]   [6]
    s = [[1, 2], [3], [4, 5], [6]]
    assert [prefix(s, i) for i in range(5)] == [
        [],
        [1, 2],
        [1, 2, 3],
        [1, 2, 3, 4, 5],  # the paper calls this S[4], but four slices hold the 6 as well
        [1, 2, 3, 4, 5, 6],
    ]


def test_a_finite_stream_ends_in_empty_slices():
    finite = [[1, 2], [3], [4], [], [], []]
    assert prefix(finite, 3) == [1, 2, 3, 4]
    assert all(prefix(finite, i) == joined(finite) for i in range(3, 9))


def test_an_empty_slice_changes_nothing_at_any_place():
    for place in range(3):
        slices = [[1], [2, 3]]
        slices.insert(place, [])
        assert joined(slices) == [1, 2, 3]


def sliced_streams():
    return testing.streams().flatmap(lambda s: st.tuples(st.just(s), testing.slicings(s), testing.slicings(s)))


@given(sliced_streams())
def test_every_slicing_joins_back_to_its_stream(drawn):
    stream, one, two = drawn
    assert joined(one) == stream
    assert joined(two) == stream


@given(sliced_streams())
def test_slicings_of_one_stream_have_one_canonical_history(drawn):
    stream, one, two = drawn
    assert canonical(joined(one)) == canonical(joined(two)) == canonical(stream)


@given(sliced_streams())
def test_each_s_i_extends_the_one_before(drawn):
    stream, slices, _ = drawn
    for i in range(len(slices)):
        assert prefix(slices, i + 1) == prefix(slices, i) + slices[i]
        assert stream[: len(prefix(slices, i))] == prefix(slices, i)


def test_a_promise_may_come_in_a_slice_of_its_own():
    slices = [[Insert(1, 4, "A")], [], [Cti(3)], [Insert(3, 5, "B")]]
    assert canonical(prefix(slices, 3)) == History([(1, 4, "A")])
    assert canonical(joined(slices)) == History([(1, 4, "A"), (3, 5, "B")])
