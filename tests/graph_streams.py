"""Random graphs as streams, for tests of loops: few nodes, so that cycles, and several ways, are common."""

import polars as pl
from hypothesis import strategies as st
from plan.catalogue import AsOperator

from cedr import api
from cedr.stream import Stream
from cedr.testing import rows

EDGES = {"start": pl.Int64, "end": pl.Int64}
GRAPHS = {**EDGES, "length": pl.Int64}
LINKS = rows(start=st.integers(0, 2), end=st.integers(0, 2))
WEIGHED = rows(start=st.integers(0, 2), end=st.integers(0, 2), length=st.integers(0, 3))
NODES = rows(node=st.integers(0, 2))


def links(name: str = "a", **options) -> Stream:
    return api.source(name, EDGES, **options)


def weighed(**options) -> Stream:
    return api.source("a", GRAPHS, **options)


AsPorts = AsOperator
