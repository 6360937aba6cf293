"""Pattern operators: each against brute force over all tuples of events, and what WHERE means for negation."""

from collections import Counter
from itertools import combinations, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr.reference.patterns import (
    ALL,
    ANY,
    ATLEAST,
    ATMOST,
    CANCEL_WHEN,
    NOT,
    SEQUENCE,
    UNLESS,
    ReferenceAttributeEqual,
    ReferenceCorrelationKey,
    ReferenceEventType,
    ReferencePatternQuery,
    ReferencePredicate,
)
from cedr.temporal import History, QueryError, Row
from cedr.testing import histories, rows

events = histories(rows(m=st.integers(0, 1), n=st.integers(0, 2)), max_size=4, max_time=12)
inputs = st.fixed_dictionaries({"A": events, "B": events, "C": events})
scopes = st.integers(1, 10)
A, B, C = ReferenceEventType("A", "a"), ReferenceEventType("B", "b"), ReferenceEventType("C", "c")


def same_m(x, z):
    return x.payload.m == z.payload.m


def spans(matches):
    """What a match is, for comparison with brute force: lifetime, root time, contributors."""
    return Counter((m.vs, m.ve, m.rt, m.payload) for m in matches)


def sequence_of(chosen, w):
    """The output of a sequence by its definition, or None."""
    starts = [e.vs for e in chosen]
    if starts != sorted(set(starts)) or starts[-1] - starts[0] > w:
        return None
    end = starts[0] + w
    return (starts[-1], end if end > starts[-1] else starts[-1] + 1, starts[0], tuple(e.payload for e in chosen))


@given(inputs, scopes)
def test_sequence_is_brute_force_over_all_tuples(data, w):
    expected = [s for chosen in product(data["A"], data["B"], data["C"]) if (s := sequence_of(chosen, w))]
    assert spans(ReferencePatternQuery(SEQUENCE(A, B, C, w=w)).instances(data)) == Counter(expected)


@pytest.mark.parametrize("n", [1, 2, 3])
@given(data=inputs, w=scopes)
def test_atleast_is_brute_force_over_all_choices_of_parameters(n, data, w):
    expected = []
    for kinds in combinations("ABC", n):
        for order in permutations(kinds):
            expected += [s for chosen in product(*(data[k] for k in order)) if (s := sequence_of(chosen, w))]
    assert spans(ReferencePatternQuery(ATLEAST(n, A, B, C, w=w)).instances(data)) == Counter(expected)


@given(inputs, scopes)
def test_all_is_atleast_of_all_and_any_of_one(data, w):
    assert spans(ReferencePatternQuery(ALL(A, B, C, w=w)).instances(data)) == spans(
        ReferencePatternQuery(ATLEAST(3, A, B, C, w=w)).instances(data)
    )
    any_of = ReferencePatternQuery(ANY(A, B)).instances(data)
    assert Counter((m.vs, m.ve) for m in any_of) == Counter((e.vs, e.vs + 1) for k in "AB" for e in data[k])


@given(inputs, scopes, st.integers(1, 3))
def test_atmost_matches_when_few_events_happened(data, w, n):
    found = ReferencePatternQuery(ATMOST(n, A, B, w=w)).run(data)
    for t in range(30):
        number = sum(t - w < e.vs <= t for k in "AB" for e in data[k])
        assert found.snapshot(t).total() == (1 if 1 <= number <= n else 0)


@given(inputs, scopes)
def test_atmost_with_a_correlation_key_counts_each_value(data, w):
    found = ReferencePatternQuery(ATMOST(1, A, B, w=w), (ReferenceCorrelationKey("m"),)).run(data)
    for t in range(30):
        numbers = Counter(e.payload.m for k in "AB" for e in data[k] if t - w < e.vs <= t)
        assert found.snapshot(t).total() == sum(number == 1 for number in numbers.values())


@given(inputs, scopes)
def test_unless_and_its_complement_are_e1(data, w):
    kept = ReferencePatternQuery(UNLESS(A, B, w=w), (ReferencePredicate("a b", same_m),)).instances(data)
    forbidden = [e for e in data["A"] if any(e.vs < f.vs < e.vs + w and f.payload.m == e.payload.m for f in data["B"])]
    both = Counter((m.vs, m.payload) for m in kept) + Counter((e.vs, e.payload) for e in forbidden)
    assert both == Counter((e.vs, e.payload) for e in data["A"])
    assert all(m.ve == m.vs + w for m in kept)


@given(inputs, scopes, scopes, st.integers(1, 2))
def test_unless_counts_its_scope_from_the_nth_contributor(data, w, v, n):
    kept = ReferencePatternQuery(UNLESS(SEQUENCE(A, B, w=w), C, n=n, w=v)).instances(data)
    expected = []
    for chosen in product(data["A"], data["B"]):
        if sequence := sequence_of(chosen, w):
            start, end = chosen[n - 1].vs, sequence[0]
            if not any(start < c.vs < start + v for c in data["C"]):
                vs = max(start + v, end)
                expected.append((vs, max(end + v, vs + 1), sequence[2], sequence[3]))
    assert spans(kept) == Counter(expected)


@given(inputs, scopes)
def test_not_forbids_between_first_and_last_contributor(data, w):
    kept = ReferencePatternQuery(NOT(C, SEQUENCE(A, B, w=w))).instances(data)
    expected = [
        s
        for a, b in product(data["A"], data["B"])
        if (s := sequence_of((a, b), w)) and not any(a.vs < c.vs < b.vs for c in data["C"])
    ]
    assert spans(kept) == Counter(expected)


@given(inputs, scopes, scopes)
def test_cancel_when_forbids_between_root_time_and_detection(data, w, v):
    inner = SEQUENCE(UNLESS(A, ReferenceEventType("B"), w=v), B, w=w)
    kept = ReferencePatternQuery(CANCEL_WHEN(inner, C)).instances(data)
    positive = ReferencePatternQuery(inner).instances(data)
    expected = [m for m in positive if not any(m.rt < c.vs < m.vs for c in data["C"])]
    assert spans(kept) == spans(expected)


@given(inputs, scopes)
def test_where_on_positive_variables_filters_matches(data, w):
    pattern = SEQUENCE(A, B, w=w)
    every = ReferencePatternQuery(pattern).instances(data)
    for where, holds in [
        (ReferencePredicate("a b", same_m), lambda p, q: p.m == q.m),
        (ReferenceCorrelationKey("m"), lambda p, q: p.m == q.m),
        (ReferenceCorrelationKey("n", "UNIQUE"), lambda p, q: p.n != q.n),
        (ReferenceAttributeEqual("n", 1), lambda p, q: p.n == q.n == 1),
        (ReferencePredicate("b", lambda b: b.payload.n == 2), lambda p, q: q.n == 2),
    ]:
        kept = ReferencePatternQuery(pattern, (where,)).instances(data)
        assert spans(kept) == spans(m for m in every if holds(*m.payload))


@given(inputs, scopes)
def test_a_correlation_key_reaches_the_negated_side(data, w):
    by_key = ReferencePatternQuery(UNLESS(SEQUENCE(A, B, w=w), C, w=w), (ReferenceCorrelationKey("m"),)).instances(data)
    spelled = ReferencePatternQuery(
        UNLESS(SEQUENCE(A, B, w=w), C, w=w), (ReferencePredicate("a b", same_m), ReferencePredicate("a c", same_m))
    ).instances(data)
    assert spans(by_key) == spans(spelled)


def test_where_on_a_negated_variable_never_filters_the_output():
    #  A(m=0)   1  kept: the B at 3 is of another machine, so it cannot negate
    #  B(m=1)     3
    data = {"A": History([(1, 9, Row(m=0))]), "B": History([(3, 9, Row(m=1))])}
    query = ReferencePatternQuery(UNLESS(A, B, w=5), (ReferencePredicate("a b", same_m),))
    assert query.run(data) == History([(1, 6, Row(m=0))])
    assert ReferencePatternQuery(UNLESS(A, B, w=5)).run(data) == History()


def test_a_predicate_on_a_parameter_that_takes_no_part_does_not_restrict():
    data = {"A": History([(1, 9, Row(m=0))]), "B": History([(3, 9, Row(m=1))])}
    where = (ReferencePredicate("a b", same_m),)
    assert len(ReferencePatternQuery(ATLEAST(1, A, B, w=5), where).instances(data)) == 2
    assert len(ReferencePatternQuery(ATLEAST(2, A, B, w=5), where).instances(data)) == 0


def test_negation_inside_negation_sees_the_outer_instance():
    # A m=0 at 1 is forbidden by a B that is itself not followed by a C with the machine of that A.
    data = {
        "A": History([(1, 2, Row(m=0)), (1, 2, Row(m=1))]),
        "B": History([(2, 3, Row(m=9))]),
        "C": History([(3, 4, Row(m=1))]),
    }
    query = ReferencePatternQuery(UNLESS(A, UNLESS(B, C, w=5), w=5), (ReferencePredicate("a c", same_m),))
    assert query.run(data) == History([(1, 6, Row(m=1))])


def test_any_parameter_may_be_an_expression():
    # ALL(E1, NOT(E2, SEQUENCE(E3, E4, w')), w) of the paper, with A, B, C, A2 for E1..E4
    data = {
        "A": History([(1, 2, "a")]),
        "B": History([(5, 6, "b")]),
        "C": History([(2, 3, "c"), (6, 7, "c2")]),
        "D": History([(4, 5, "d"), (8, 9, "d2")]),
    }
    query = ReferencePatternQuery(ALL(A, NOT(B, SEQUENCE(C, ReferenceEventType("D", "d"), w=3)), w=10))
    assert [m.payload for m in query.instances(data)] == [("a", ("c", "d")), ("a", ("c2", "d2"))]
    late = {**data, "B": History([(3, 4, "b")])}
    assert [m.payload for m in query.instances(late)] == [("a", ("c2", "d2"))]


def test_a_sequence_at_the_edge_of_its_scope_lives_one_chronon():
    data = {"A": History([(1, 2, "a")]), "B": History([(6, 7, "b")])}
    assert ReferencePatternQuery(SEQUENCE(A, B, w=5)).run(data) == History([(6, 7, ("a", "b"))])
    assert ReferencePatternQuery(SEQUENCE(A, B, w=4)).run(data) == History()


def test_header_of_a_nested_match():
    data = {"A": History([(1, 2, "a")]), "B": History([(3, 4, "b")]), "C": History([(4, 5, "c")])}
    inner = SEQUENCE(A, B, w=5, var="s")
    (match,) = ReferencePatternQuery(
        SEQUENCE(inner, C, w=5), (ReferencePredicate("s c", lambda s, c: s.vs < c.vs),)
    ).instances(data)
    assert (match.vs, match.ve, match.rt) == (4, 8, 1)
    assert [c.payload for c in match.cbt] == [("a", "b"), "c"]
    assert [leaf.payload for leaf in match.leaves] == ["a", "b", "c"]
    assert match.bound["s"].cbt == match.cbt[0].cbt


@given(inputs, scopes)
def test_ids_distinguish_matches(data, w):
    for pattern in (SEQUENCE(A, B, w=w), ATLEAST(2, A, B, C, w=w), ATMOST(2, A, B, w=w), UNLESS(A, B, w=w)):
        found = ReferencePatternQuery(pattern).instances(data)
        assert len({m.id for m in found}) == len(found)


def test_unknown_types_and_attributes_are_refused():
    with pytest.raises(QueryError, match="unknown event type 'A'; there are: B"):
        ReferencePatternQuery(SEQUENCE(A, B, w=5)).instances({"B": History()})
    data = {"A": History([(0, 1, Row(m=1))]), "B": History([(1, 2, Row(m=1))])}
    correlated = ReferencePatternQuery(SEQUENCE(A, B, w=5), (ReferenceCorrelationKey("zone"),))
    with pytest.raises(QueryError, match="the event m=1 at 0 has no attribute 'zone', which WHERE requires"):
        correlated.instances(data)
