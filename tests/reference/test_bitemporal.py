"""Histories of versions: operators at each instant of occurrence time, and slices on both axes."""

from hypothesis import given
from hypothesis import strategies as st

from cedr import reference as ref
from cedr.reference.patterns import SEQUENCE, UNLESS, ReferenceEventType, ReferencePatternQuery
from cedr.temporal import INF, History, Interval, Statement, Version, bitemporal, known_at
from cedr.testing import lifetimes

QUERY = ReferencePatternQuery(SEQUENCE(ReferenceEventType("A"), ReferenceEventType("B"), w=10))


@st.composite
def providers(draw, name):
    """A provider that states and modifies up to three events."""
    statements = draw(
        st.lists(
            st.tuples(st.integers(0, 2), lifetimes(12), st.integers(0, 9), st.sampled_from("pq")),
            max_size=5,
            unique_by=lambda s: (s[0], s[2]),
        )
    )
    return bitemporal(Statement(f"{name}{id}", life.start, life.end, os, p) for id, life, os, p in statements)


inputs = st.fixed_dictionaries({"A": providers("a"), "B": providers("b"), "C": providers("c")})


@given(inputs)
def test_a_pattern_at_an_occurrence_time_is_the_pattern_over_what_was_known_then(data):
    for query in (QUERY, ReferencePatternQuery(UNLESS(ReferenceEventType("A"), ReferenceEventType("B"), w=10))):
        result = query.run_bitemporal(data)
        for occurrence in range(12):
            known = {kind: known_at(history, occurrence) for kind, history in data.items()}
            assert known_at(result, occurrence) == query.run(known)


@given(inputs)
def test_a_sequence_holds_for_the_occurrence_times_common_to_its_contributors(data):
    expected = History(
        (common.start, common.end, (a.payload.payload, b.payload.payload))
        for a in data["A"]
        for b in data["B"]
        if a.payload.vs < b.payload.vs <= a.payload.vs + 10
        if (common := a.lifetime.intersection(b.lifetime))
    )
    result = ref.project(QUERY.run_bitemporal(data), lambda version: version.payload)
    assert result.coalesce() == expected.coalesce()


def test_a_modification_moves_a_match():
    # occurrence  1        3
    # a           [1,∞)                at 3 the provider corrects b from 4 to 2
    # b           [4,9)    [2,9)
    a = bitemporal([Statement("a", 1, INF, 1, "A")])
    b = bitemporal([Statement("b", 4, 9, 1, "B"), Statement("b", 2, 9, 3, "B")])
    result = QUERY.run_bitemporal({"A": a, "B": b})
    assert result == History(
        [
            (1, 3, Version(("a", "b"), 4, 11, ("A", "B"))),
            (3, INF, Version(("a", "b"), 2, 11, ("A", "B"))),
        ]
    )


@given(inputs)
def test_per_occurrence_of_a_relational_operator(data):
    result = ref.per_occurrence(lambda a, b: ref.join(a, b, lambda p, q: p == q), data["A"], data["B"])
    for occurrence in range(12):
        a, b = (known_at(data[kind], occurrence) for kind in "AB")
        assert known_at(result, occurrence) == ref.join(a, b, lambda p, q: p == q)


def test_slices_cut_on_both_axes():
    history = bitemporal([Statement("e", 1, INF, 1, "P"), Statement("e", 1, 10, 5, "P")])
    by_occurrence = ref.slice_occurrence(history, Interval(3, 7))
    assert by_occurrence == History([(3, 5, Version("e", 1, INF, "P")), (5, 7, Version("e", 1, 10, "P"))])
    assert ref.slice_valid(by_occurrence, Interval(8, 12)) == History(
        [(3, 5, Version("e", 8, 12, "P")), (5, 7, Version("e", 8, 10, "P"))]
    )
    assert ref.slice_valid(history, Interval(0, 1)) == History()


def test_slices_of_a_history_with_one_axis():
    history = History([(1, 5, "A"), (4, 9, "B")])
    for cut in (ref.slice_occurrence, ref.slice_valid):
        assert cut(history, Interval(2, 5)) == History([(2, 5, "A"), (4, 5, "B")])
