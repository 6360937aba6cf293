"""Element by element the operators emit what Algorithms R3 and R4 emit, and no more than Theorem 1 allows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from merge_check import SCHEMA, check_merge, merges

from cedr.operators.merge.algorithms import ALGORITHMS
from cedr.reference.merge import ReferenceR3, ReferenceR4
from cedr.temporal import Adjust, Cti, Insert

PRINTED = {"R3": ReferenceR3, "R3-": ReferenceR3, "R4": ReferenceR4}


def in_any_order(elements):
    return sorted(map(str, elements))


@pytest.mark.parametrize("algorithm", PRINTED)
@given(data=st.data())
def test_one_element_at_a_time_as_printed(algorithm, data):
    _, ports, arrivals, _ = data.draw(merges(algorithm))
    singles = [(port, [e]) for port, elements in arrivals for e in elements]
    printed = PRINTED[algorithm]()
    expected = [printed.take(port, e) for port, (e,) in singles]
    steps, _ = check_merge(lambda: ALGORITHMS[algorithm](SCHEMA, ports), ports, singles, multiset=True)
    assert [in_any_order(emitted) for emitted in steps] == [in_any_order(emitted) for emitted in expected]


# Theorem 1 is printed as: no more inserts or adjusts than inserts received. One insert [0, 1) that is adjusted to 3,
# then, after CTI 2, to 5 refutes it: all of that must be emitted. What holds is tested here.


def count(kind, elements):
    return sum(isinstance(e, kind) for e in elements)


@pytest.mark.parametrize("growing", [False, True])
@given(data=st.data())
def test_theorem_1_r3_does_not_chatter(growing, data):
    _, ports, arrivals, _ = data.draw(merges("R3", growing=growing))
    steps, _ = check_merge(lambda: ALGORITHMS["R3"](SCHEMA, ports), ports, arrivals)
    came, emitted = [], []
    for (_, elements), out in zip(arrivals, steps, strict=True):
        came += elements
        emitted += out
        assert count(Insert, emitted) <= count(Insert, came)
        assert count(Cti, emitted) <= count(Cti, came)
        assert count(Adjust, emitted) <= count(Insert, came) + (count(Adjust, came) if growing else 0)
