"""Fronts against their definition: what each input promised about a group, looked up one by one."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr import testing
from cedr.columnar.chunk import Chunk, chunk_of
from cedr.columnar.index import RowIndex
from cedr.columnar.state import PART, fields
from cedr.operators import waiting
from cedr.operators.base import Operator
from cedr.operators.front import Front
from cedr.temporal import Cti, Insert, Row
from cedr.temporal.punctuation import OneOf, Punctuation, frontier, puncts, punctuation
from cedr.temporal.time import INF, MIN

SCHEMAS = [{"a": pl.Int64(), "s": pl.String(), "v": pl.Int64()}, {"x": pl.Int64(), "s": pl.String(), "v": pl.Int64()}]
NAMES = [{"a": "a", "s": "s"}, {"a": "x", "s": "s"}]
VALUES = {"a": [1, 2, None], "s": ["p", "q", None]}
KEYS = [dict(zip(VALUES, values, strict=True)) for values in product(*VALUES.values())]


class Index(RowIndex):
    """Compacts however few its rows are."""

    def may_compact(self):
        return True


class Groups(Operator):
    """Numbers the groups of its inputs; results of a group start at `held` of its key and are not emitted."""

    state = fields(index=PART, front=PART)

    def __init__(self, ports):
        self.ports = ports
        super().__init__()
        self.index = Index({"a": pl.Int64(), "s": pl.String()})
        self.front = Front(self, self.index, NAMES[:ports], {"a": ["k"], "s": ["s", "s2"]})
        self.held = {}
        self.emitted = np.empty(0, dtype=np.int64)

    def advance(self, port, chunk):
        self.index.ids(chunk.rows.select(pl.col(p).alias(name) for name, p in NAMES[port].items()))
        self.front.advance(port, chunk)
        held = np.array([self.held.get(key, INF) for key in self.groups()], dtype=np.int64)
        self.front.settle(held if self.front.keyed else np.array([INF]))
        cti = min(self.cti, int(held.min(initial=INF)))
        return Chunk(chunk.rows.clear(), cti, promises=self.front.passed(cti, len(chunk), self.emitted))

    def forget(self, used):
        numbers = self.index.compact(used)
        if numbers is not None:
            self.front.renumber(numbers)

    def groups(self):
        return list(self.index.rows.iter_rows())


times = st.integers(0, 9)


@st.composite
def steps(draw, ports=2, ranges=True, schemes=(("a",), ("s",), ("a", "s"), ("v",), ("a", "v"))):
    """Chunks `(port, elements)`: rows of groups, promises about them and others, CTIs."""
    values = {"a": VALUES["a"][:2], "s": VALUES["s"][:2], "v": [1, 2]}
    result = []
    for _ in range(draw(st.integers(1, 6))):
        port = draw(st.integers(0, ports - 1))
        name = {"a": NAMES[port]["a"]}
        elements = [Insert(20, INF, payload(port, key)) for key in draw(st.lists(st.sampled_from(KEYS), max_size=2))]
        for scheme in draw(st.lists(st.sampled_from(schemes), max_size=3)):
            patterns = {
                name.get(n, n): draw(st.one_of(testing.patterns_of(values[n], ranges), st.just(OneOf([None]))))
                for n in scheme
            }
            elements.append(Punctuation(patterns, draw(st.one_of(times, st.just(INF)))))
        if draw(st.booleans()):
            elements.append(Cti(draw(times)))
        result.append((port, elements))
    return result


def payload(port, key):
    return Row({NAMES[port]["a"]: key["a"], "s": key["s"], "v": 1})


def restored(operator):
    again = Groups(operator.ports)
    again.restore(operator.snapshot())
    again.held = operator.held
    return again


def own_front(sent, ctis, key, any_v=True):
    """min over the inputs of max(CTI, what was promised about all payloads with this key)."""
    fronts = []
    for port, (elements, cti) in enumerate(zip(sent, ctis, strict=True)):
        about_keys = [p for p in puncts(elements) if "v" not in p.attributes]
        found = frontier(payload(port, key), about_keys)
        fronts.append(max(cti, MIN if found is None else found))
    return min(fronts)


@pytest.mark.parametrize("few", [0, 1000])
@given(script=steps(), data=st.data())
def test_fronts_are_what_was_promised_and_no_promise_covers_more(few, script, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "FEW", few)
        operator, sent, settled = Groups(2), [[], []], {}
        for port, elements in script:
            if data.draw(st.booleans()):
                operator = restored(operator)
            sent[port] += elements
            operator.held = {key: data.draw(times) for key in operator.groups() if data.draw(st.booleans())}
            out = operator.process(port, chunk_of(elements, SCHEMAS[port]))
            fronts = operator.front.all()
            for number, key in enumerate(operator.groups()):
                expected = own_front(sent, operator.ctis, {"a": key[0], "s": key[1]})
                assert fronts[number % len(fronts)] == expected
                settled[key] = max(settled.get(key, MIN), min(expected, operator.held.get(key, INF)))
            for p in puncts(out.elements()):
                assert set(p.attributes) <= {"k", "s", "s2"}
                for key in KEYS:
                    if p.about({"k": key["a"], "s": key["s"], "s2": key["s"]}):
                        assert p.before <= own_front(sent, operator.ctis, key)
                        assert p.before <= settled.get((key["a"], key["s"]), INF)
            if data.draw(st.booleans()) and len(operator.index):
                used = data.draw(st.sets(st.sampled_from(range(len(operator.index)))))
                operator.forget(np.array(sorted(used), dtype=np.int64))
                settled = {key: t for key, t in settled.items() if key in operator.groups()}


@pytest.mark.parametrize("few", [0, 1000])
@given(script=steps(ranges=False, schemes=[("a",), ("a", "s")]))
def test_what_all_inputs_promise_is_passed(few, script):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "FEW", few)
        operator, sent, out = Groups(2), [[], []], []
        for port, elements in [*script, *([(0, [])] * 30 if few == 0 else [])]:
            sent[port] += elements
            out += operator.process(port, chunk_of(elements, SCHEMAS[port])).elements()
        for key in KEYS:
            found = frontier({"k": key["a"], "s": key["s"], "s2": key["s"]}, puncts(out))
            found = max(operator.cti_out, MIN if found is None else found)
            assert found == own_front(sent, operator.ctis, key)


def step(operator, *elements, held=None, port=0):
    operator.held = held or {}
    return puncts(operator.process(port, chunk_of(elements, SCHEMAS[port])).elements())


def test_a_promise_waits_for_the_groups_it_is_about():
    operator = Groups(1)
    one, two = (Insert(20, INF, Row(a=1, s=s, v=1)) for s in "pq")
    a_is_over = punctuation(a=1)
    assert step(operator, one, two, a_is_over, held={(1, "p"): 5}) == [punctuation(5, k=1)]
    assert step(operator, held={(1, "p"): 5}) == []  # nothing new
    assert step(operator, held={(1, "p"): 7}) == [punctuation(7, k=1)]
    assert step(operator) == [punctuation(k=1)]
    assert step(operator) == []


def test_a_promise_about_no_group_passes_at_once():
    shown = [punctuation(8, k=2, s="p"), punctuation(8, k=2, s2="p")]
    assert step(Groups(1), punctuation(8, a=2, s="p")) == shown


def test_without_promises_about_groups_there_is_nothing_to_keep():
    operator = Groups(2)
    step(operator, Insert(20, INF, Row(a=1, s="p", v=1)), punctuation(v=3), Cti(4))
    assert not operator.front.keyed
    assert operator.front.all().tolist() == [MIN]
    state = operator.front.snapshot()
    assert (state["own"], state["settled"].tolist()) == ([None, None], [MIN])
    assert operator.front.nbytes == 8
