"""State of every kind of operator that an earlier version wrote is read by this one, and continues."""

import polars as pl
import pytest
from plan.catalogue import SCHEMA
from runtime.spark.cluster import Cluster, history
from runtime.spark.tables import table_of
from storage.kept_operators import CHANGES, DONE, NAMES, PARTS, inputs, place_of, stream, tables, unpack

from cedr.testing import assert_same


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return unpack(tmp_path_factory.mktemp("kept"))


@pytest.mark.parametrize("name", NAMES)
def test_it_goes_on(name, kept):
    place, query = place_of(kept, name), stream(name)
    cluster, before = Cluster(query, str(place / "checkpoint"), 2), pl.read_ipc(place / CHANGES)
    later = [cluster.run(batch, cluster.packets(batch, tables(name, batch))) for batch in range(DONE, PARTS)]
    changes = [before, *later, cluster.run(PARTS, cluster.closing())]
    never = query.run({source: table_of(elements, SCHEMA) for source, elements in inputs(name).items()})
    assert_same(history(changes, query.schema), never.history())


def test_there_is_state_in_it(kept):
    """Else the test above would prove nothing."""
    for name in NAMES:
        state = place_of(kept, name) / "checkpoint" / "state"
        assert list(state.rglob("snapshot-*")), name
        assert [p for p in state.rglob("log-*") if p.name.endswith(f"{DONE - 1:012d}")], name
