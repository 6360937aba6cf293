"""Sliced lists: how a stream is cut has no meaning, only the concatenation counts."""

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from cedr import testing
from cedr.temporal import canonical
from cedr.temporal.slices import joined, prefix

SLICES = st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=5)


@given(SLICES)
def test_joined_is_the_concatenation(slices):
    assert joined(slices) == list(chain.from_iterable(slices))


@given(SLICES, st.integers(0, 7))
def test_a_prefix_is_the_concatenation_of_the_first_slices(slices, i):
    assert prefix(slices, i) == joined(slices[:i])
    assert prefix(slices, i) + joined(slices[i:]) == joined(slices)


@given(SLICES, st.integers(0, 5))
def test_an_empty_slice_changes_nothing(slices, place):
    assert joined([*slices[:place], [], *slices[place:]]) == joined(slices)


def test_no_slices_are_the_empty_stream():
    assert joined([]) == []
    assert prefix([[1]], 0) == []


@given(SLICES)
def test_slicing_again_makes_no_difference(slices):
    assert joined([joined(slices)]) == joined([[x] for x in joined(slices)]) == joined(slices)


@given(testing.streams().flatmap(lambda s: st.tuples(st.just(s), testing.slicings(s))))
def test_the_history_of_a_prefix_of_slices_is_that_of_its_elements(drawn):
    stream, slices = drawn
    for i in range(len(slices) + 1):
        seen = prefix(slices, i)
        assert canonical(seen) == canonical(stream[: len(seen)])
