"""How merges are checked: several streams of one history, and after each slice the output is compatible with them."""

import polars as pl
from hypothesis import strategies as st
from oracle_check import arrivals_of
from storage.through_bytes import through_bytes

from cedr import testing
from cedr.columnar.chunk import chunk_of
from cedr.reference.merge import compatible
from cedr.temporal import INF, Cti, History, Insert, Relation, Row, canonical, closed_up_to, validate
from cedr.testing import MAX_TIME

SCHEMA = {"p": pl.String()}


def row(name):
    return Row(p=name)


PAYLOADS = st.sampled_from("ABC").map(row)
GHOSTS = st.sampled_from("XY").map(row)


def is_keyed(stream):
    """Are start and payload a key at every moment?"""
    relation = Relation()
    for element in stream:
        relation.apply(element)
        keys = [(e.vs, e.payload) for e in relation.history()]
        if len(set(keys)) < len(keys):
            return False
    return True


@st.composite
def histories(draw, max_size=6, unique=None):
    """`unique`: what at most one event has, as a function of events. Often many start together."""
    by = {"unique_by": unique} if unique else {}
    events = testing.events(PAYLOADS, max_time=draw(st.sampled_from([2, 8, MAX_TIME])))
    return History(draw(st.lists(events, max_size=max_size, **by)))


def key(event):
    return event.vs, event.payload


@st.composite
def often_promised(draw, elements):
    """A closed stream with many CTIs, each as high as what still comes allows: ends are settled soon."""
    result, last = [], -1
    for position in range(len(elements) + 1):
        limit = min((e.sync for e in elements[position:]), default=INF)
        if limit > last and (limit == INF or draw(st.booleans())):
            last = limit
            result.append(Cti(limit))
        result += elements[position : position + 1]
    return result


def any_streams(history, payloads, **how):
    """Disorder, revisions and events that never were, with few CTIs or with many."""
    few = testing.streams_of(history, payloads=payloads, closed=True, **how)
    return st.one_of(few, testing.streams_of(history, payloads=payloads, ctis=False, **how).flatmap(often_promised))


@st.composite
def keyed_streams(draw, history, growing=True):
    """With disorder, revisions and events that never were, but never two of one start and payload."""
    return draw(any_streams(history, GHOSTS, growing=growing).filter(is_keyed))


@st.composite
def ordered_streams(draw, history, same_order=False, closed=True):
    """Inserts in order of start; events that start together in any order, or in the same order always."""
    events = sorted(history, key=lambda e: e.vs) if same_order else draw(st.permutations(list(history)))
    inserts = [Insert(*e) for e in sorted(events, key=lambda e: e.vs)]
    return draw(testing.promised(inserts, ordered=True, closed=closed))


STREAMS = {
    "R0": (lambda e: e.vs, lambda h: ordered_streams(h)),
    "R1": (None, lambda h: ordered_streams(h, same_order=True)),
    "R2": (None, lambda h: ordered_streams(h)),
    "R3": (key, keyed_streams),
    "R3-": (key, keyed_streams),
    "R4": (None, lambda h: any_streams(h, PAYLOADS)),
}
"""By algorithm: what its histories have only once, and the streams of them."""


@st.composite
def merges(draw, algorithm, max_ports=3, **how):
    """A history, slices `(port, elements)` of closed streams of it, and where to save and restore."""
    unique, streams_of = STREAMS[algorithm]
    history = draw(histories(unique=unique))
    inputs = [draw(streams_of(history, **how)) for _ in range(draw(st.integers(1, max_ports)))]
    arrivals = draw(arrivals_of(inputs))
    if draw(st.booleans()):
        arrivals = [(port, [e]) for port, elements in arrivals for e in elements]
    restore_at = draw(st.sets(st.integers(0, max(len(arrivals) - 1, 0)), max_size=2))
    return history, len(inputs), arrivals, restore_at


def restored(make, operator):
    state = through_bytes(operator.snapshot())
    fresh = make()
    fresh.restore(state)
    return fresh


def check_merge(make, ports, arrivals, restore_at=(), multiset=False, expected=None):
    """Compatible after every slice (C1 to C3), valid, and with the right history once an input is closed."""
    operator = make()
    inputs, out, steps = [[] for _ in range(ports)], [], []
    for step, (port, elements) in enumerate(arrivals):
        if step in restore_at:
            operator = restored(make, operator)
        emitted = operator.process(port, chunk_of(elements, operator.schema)).elements()
        inputs[port] += elements
        out += emitted
        steps.append(emitted)
        assert compatible(inputs, out, multiset=multiset) == []
        assert closed_up_to(out) <= max(map(closed_up_to, inputs))
    validate(out)
    if expected is not None and any(closed_up_to(i) == INF for i in inputs):
        testing.assert_same(canonical(out), expected)
        assert closed_up_to(out) == INF
    return steps, operator
