"""How operators are compared with the oracle: any stream, any slicing, snapshot and restore in the middle."""

from collections.abc import Callable, Mapping, Sequence

from hypothesis import strategies as st
from storage.through_bytes import through_bytes

from cedr import testing
from cedr.columnar.chunk import chunk_of
from cedr.operators.base import Operator
from cedr.temporal import Element, History, canonical, closed_up_to, validate
from cedr.temporal.punctuation import Punctuation, puncts
from cedr.temporal.time import INF

Oracle = Callable[..., History]


def run(
    make: Callable[[], Operator], arrivals: Sequence[tuple[int, Sequence[Element]]], schemas, restore_at=()
) -> list:
    """Feed slices `(port, elements)`; returns the output elements after each slice."""
    operator = make()
    outputs = []
    for step, (port, elements) in enumerate(arrivals):
        if step in restore_at:
            state = through_bytes(operator.snapshot())
            operator = make()
            operator.restore(state)
        outputs.append(operator.process(port, chunk_of(elements, schemas[port])).elements())
    return outputs


def check_against_oracle(make, oracle: Oracle, arrivals, schemas, restore_at=(), compare=testing.assert_same) -> list:
    """The output is a valid stream, right to each of its CTIs, and right altogether once all inputs are closed.

    To the time of each of its punctuations it is right about the payloads that are meant.
    """
    outputs = run(make, arrivals, schemas, restore_at)
    received: list[list[Element]] = [[] for _ in schemas]
    out: list[Element] = []
    for (port, elements), produced in zip(arrivals, outputs, strict=True):
        received[port] += elements
        out += produced
        settled = closed_up_to(out)
        if settled > 0:
            expected = oracle(*(canonical(t) for t in received))
            compare(canonical(out).to(settled), expected.to(settled))
        if promised := puncts(produced):
            expected, emitted = oracle(*(canonical(t) for t in received)), canonical(out)
            for p in promised:
                compare(meant(emitted, p), meant(expected, p))
    validate(out)
    if all(closed_up_to(t) == INF for t in received):
        compare(canonical(out), oracle(*(canonical(t) for t in received)))
        assert closed_up_to(out) == INF
    return out


def meant(history: History, p: Punctuation) -> History:
    """The part of a history that a punctuation settles."""
    return History(e for e in history.to(p.before) if p.about(e.payload))


@st.composite
def arrivals_of(draw, streams: Sequence[Sequence[Element]]):
    """The streams of all ports in slices, the ports taking turns at random."""
    sliced = [draw(testing.slicings(s)) for s in streams]
    turns = draw(st.permutations([port for port, slices in enumerate(sliced) for _ in slices]))
    rest = [iter(slices) for slices in sliced]
    return [(port, next(rest[port])) for port in turns]


@st.composite
def runs(draw, payloads: Mapping | Sequence, ports: int = 1, max_size: int = 6, **options):
    """Random closed streams for each port, sliced and interleaved, with the places of snapshot and restore."""
    streams = [draw(testing.streams(payloads, max_size=max_size, closed=True, **options)) for _ in range(ports)]
    arrivals = draw(arrivals_of(streams))
    restore_at = draw(st.sets(st.integers(0, max(len(arrivals) - 1, 0)), max_size=2))
    return arrivals, restore_at
