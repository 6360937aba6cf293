"""How operators are tested with promises about parts of their input."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from hypothesis import strategies as st
from oracle_check import arrivals_of, run

from cedr import testing
from cedr.columnar.chunk import Chunk, chunk_of
from cedr.operators.base import Operator
from cedr.temporal import Element, History, Row, canonical, closed_up_to
from cedr.temporal.punctuation import Punctuation, frontier, puncts
from cedr.temporal.stream import data
from cedr.temporal.time import INF, MIN

Values = Mapping[str, Sequence[Any]]


@st.composite
def punctuated_runs(draw, payloads, values: Values, ports: int = 1, *, max_punctuations=6, closed=True, **options):
    """Random streams with promises about parts of them, sliced and interleaved; where to snapshot and restore."""
    streams = testing.streams(payloads, closed=closed, **options)
    promising = streams.flatmap(lambda s: testing.punctuated(s, dict(values), max_punctuations))
    arrivals = draw(arrivals_of([draw(promising) for _ in range(ports)]))
    return arrivals, draw(st.sets(st.integers(0, max(len(arrivals) - 1, 0)), max_size=2))


def rows_of(values: Values) -> list[Row]:
    """All payloads with these values."""
    return [Row(dict(zip(values, chosen, strict=True))) for chosen in product(*values.values())]


def about(history: History, key: Row) -> History:
    """The events whose payload agrees with a key."""
    return History(e for e in history if all(e.payload[name] == value for name, value in key.items()))


def promised(out: Iterable[Element], key: Row) -> int:
    """The time promised about a key."""
    found = frontier(key, [p for p in puncts(out) if set(p.attributes) <= set(key)])
    return MIN if found is None else found


def check_keys_that_are_over(make: Callable[[], Operator], oracle, arrivals, schemas, keys: Sequence[Row]) -> Operator:
    """When all inputs promise keys to infinity, their results are emitted and promised. Returns the operator."""
    ends = [(port, [Punctuation(key) for key in keys]) for port in range(len(schemas))]
    operators: list[Operator] = []

    def kept() -> Operator:
        operators.append(make())
        return operators[-1]

    out = [e for part in run(kept, [*arrivals, *ends], schemas) for e in part]
    histories = [canonical(e for at, part in arrivals if at == port for e in part) for port in range(len(schemas))]
    expected = oracle(*histories)
    for key in keys:
        testing.assert_same(about(canonical(out), key), about(expected, key))
        assert promised(out, key) == INF
    return operators[-1]


def check_restored_goes_on_the_same(make: Callable[[], Operator], arrivals, schemas, restore_at) -> None:
    """What is put out does not depend on snapshot and restore on the way."""
    assert list(map(in_any_promise_order, run(make, arrivals, schemas, restore_at))) == list(
        map(in_any_promise_order, run(make, arrivals, schemas))
    )


def in_any_promise_order(elements: Sequence[Element]) -> tuple[list[Element], set[Element]]:
    """Rows in their order, what is promised after them in any."""
    return data(elements), set(elements) - set(data(elements))


def through(stages: Sequence[Operator], chunks: Iterable[Chunk]) -> list[Element]:
    """What comes out of operators in a row. Nothing leaves any of them that is not covered by what it promises.

    That holds where an Align that waits comes first; otherwise a later operator takes rows emitted early for
    progress of the whole stream, and emits too early for other parts.
    """
    out: list[list[Element]] = [[] for _ in stages]
    for chunk in chunks:
        for stage, out_so_far in zip(stages, out, strict=True):
            chunk = stage.process(0, chunk)
            out_so_far += chunk.elements()
            for e in data(chunk.elements()):
                about_it = frontier(e.payload, puncts(out_so_far))
                assert e.sync <= closed_up_to(out_so_far) or (about_it is not None and e.sync < about_it), (stage, e)
    return out[-1]


def as_chunks(arrivals, schema) -> list[Chunk]:
    return [chunk_of(elements, schema) for _, elements in arrivals]
