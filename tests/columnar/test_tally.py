"""The table is the canonical history of the elements so far."""

from hypothesis import given
from hypothesis import strategies as st
from plan.catalogue import SCHEMA, payloads

from cedr import testing
from cedr.columnar.chunk import chunk_of
from cedr.columnar.tally import COUNT, VE, VS, Tally, net_changes, repeated, summed
from cedr.temporal import Event, History, Row, canonical


@given(testing.streams(payloads, max_size=8).flatmap(testing.slicings), st.sampled_from([0, 3, 1000]))
def test_at_every_step(slices, patience):
    tally, seen = Tally(SCHEMA, patience), []
    for elements in slices:
        tally.add(chunk_of(elements, SCHEMA))
        seen += elements
        rows = tally.copy().table().select(VS, VE, "m", "v").rows()
        assert History(Event(vs, ve, Row(m=m, v=v)) for vs, ve, m, v in rows) == canonical(seen)
    assert tally.unknown().height == 0


@given(testing.streams(payloads, max_size=8).flatmap(testing.slicings))
def test_net_changes_add_up_to_the_history(slices):
    net = [net_changes(chunk_of(elements, SCHEMA).rows, SCHEMA) for elements in slices]
    for change in net:
        assert not change.drop(COUNT).is_duplicated().any()
        assert (change[COUNT] != 0).all()
    rows = repeated(summed(net)).select(VS, VE, "m", "v").rows()
    assert History(Event(vs, ve, Row(m=m, v=v)) for vs, ve, m, v in rows) == canonical([e for s in slices for e in s])
