"""`why` and `why_not` agree with the operator and with the oracle, for random patterns over random streams."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from lineage.checked import Oracle, holds
from random_patterns import KINDS, asked, by_kind, payloads

from cedr import testing
from cedr.lineage.nearby import Nearby
from cedr.lineage.observed import LINEAGE, observe
from cedr.lineage.why import explained
from cedr.lineage.why_not import taking_part, why_not
from cedr.reference.patterns.event_type import ReferenceEventType
from cedr.temporal import History, QueryError, canonical


@st.composite
def questions(draw, **how):
    """A query and the data of its sources, as any equivalent stream."""
    query = draw(asked(**how))
    kinds = KINDS if query.ports > 1 else [KINDS]
    streams = []
    for kind in kinds:
        events = st.lists(testing.events(payloads(kind), max_time=9), min_size=3, max_size=9 // query.ports + 1)
        streams.append(draw(testing.streams_of(History(draw(events)), payloads=payloads(kind), closed=True)))
    data = dict(zip("ABC", streams, strict=False)) if query.ports > 1 else streams[0]
    return query, data, Oracle(query.query, by_kind(*(canonical(s) for s in streams)))


def possible(query):
    try:
        return bool(query.node.schema)
    except QueryError:  # consumption that cannot be decided is refused
        return False


def check_why(query, data, oracle):
    observed = observe(query.node, data)
    why = explained(observed, observed.answer.head(3))
    assert observed.answer.height == len(oracle.matches)
    for lineage, row in zip(why.lineages, observed.answer.iter_rows(named=True), strict=False):
        own = lineage.instance
        match, *_ = [m for m in oracle.matches if m == own]  # equal ones, where a pattern counts the same twice
        assert {x: i.id for x, i in match.bound.items()} == {x: i.id for x, i in own.bound.items()}
        found = [(c["id"], c["vs"]) for c in row[LINEAGE]]
        assert found == [(leaf.id, leaf.vs) for leaf in lineage.contributors()]
        assert lineage.lines()
    if why.lineages:
        assert why.contributors.height == sum(len(lineage.instance.leaves) for lineage in why.lineages)


@given(data=st.data(), modes=st.booleans())
def test_why_shows_the_events_of_every_match(data, modes):
    query, streams, oracle = data.draw(questions(depth=2, modes=modes))
    if possible(query):
        check_why(query, streams, oracle)


def leaves_of(query):
    """The event types whose events can be named."""
    return [p for p in taking_part(query.query.pattern) if isinstance(p, ReferenceEventType) and p.var]


def check_why_not(query, data, oracle, named):
    """`named` are instances by variable. What is described may be several equal events."""
    described = {x: {"vs": i.vs, "m": i.payload["m"], "n": i.payload["n"]} for x, i in named.items()}
    kinds = {leaf.var: leaf.kind for leaf in leaves_of(query)}
    ids = {
        x: {j.id for j in oracle.scope.inputs[kinds[x]] if (j.vs, j.payload) == (i.vs, i.payload)}
        for x, i in named.items()
    }
    answer = why_not(query.node, data, described)
    fitting = [m for m in oracle.matches if all(oracle.has(m, x, ids[x]) for x in ids)]
    assert bool(fitting) == (answer.match is not None), answer
    assert bool(fitting) == (not answer.reasons)
    assert str(answer)
    event(type(answer.reasons[0]).__name__ if answer.reasons else "match")
    nearby = Nearby(observe(query.node, data))
    assert all(holds(reason, oracle, nearby, ids) for reason in answer.reasons), answer
    return answer


def check_random_events(draw, query, data, oracle):
    named = {}
    for leaf in leaves_of(query):
        events = oracle.scope.inputs[leaf.kind]
        if events and draw(st.integers(0, 4)):
            named[leaf.var] = draw(st.sampled_from(events))
    if named and possible(query):
        check_why_not(query, data, oracle, named)


@given(data=st.data(), modes=st.booleans())
def test_the_reasons_of_why_not_are_true(data, modes):
    check_random_events(data.draw, *data.draw(questions(depth=2, modes=modes)))


@pytest.mark.parametrize("operator", ["sequence", "atleast"])
@given(data=st.data())
def test_why_not_knows_what_was_selected_and_consumed(operator, data):
    check_random_events(data.draw, *data.draw(questions(depth=1, modes=True, operator=operator)))


@given(data=st.data(), modes=st.booleans())
def test_why_not_finds_no_reason_against_a_match(data, modes):
    query, streams, oracle = data.draw(questions(depth=2, modes=modes))
    if not possible(query) or not oracle.matches:
        return
    match = data.draw(st.sampled_from(oracle.matches))
    named = {leaf.var: match.bound[leaf.var] for leaf in leaves_of(query) if leaf.var in match.bound}
    if named:
        assert check_why_not(query, streams, oracle, named).match is not None
