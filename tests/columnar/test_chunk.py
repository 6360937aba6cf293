"""Chunks: elements in columns and back, and times that would wrap around."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from cedr.columnar.chunk import chunk_of, concat
from cedr.operators.windows import sliding
from cedr.temporal import Insert, Row, canonical
from cedr.temporal.time import INF
from cedr.testing import rows, slicings, streams

SCHEMA = {"m": pl.Int64, "tags": pl.List(pl.String), "at": pl.Struct({"x": pl.Int64})}
payloads = rows(
    m=st.one_of(st.none(), st.integers(0, 1)),
    tags=st.one_of(st.none(), st.lists(st.sampled_from("ab"), max_size=2)),
    at=st.one_of(st.none(), st.fixed_dictionaries({"x": st.integers(0, 1)})),
)


@given(st.data())
def test_a_stream_survives_as_chunks_however_it_is_sliced(data):
    stream = data.draw(streams(payloads))
    pieces = [chunk_of(part, SCHEMA) for part in data.draw(slicings(stream))]
    assert canonical(e for piece in pieces for e in piece.elements()) == canonical(stream)
    assert canonical(concat(pieces).elements()) == canonical(stream)


def test_arrow_holds_the_same_rows():
    chunk = chunk_of([Insert(1, 5, Row(m=1, tags=["a"], at=None))], SCHEMA)
    assert chunk.to_arrow().to_pylist() == [{"_vs": 1, "_ve_old": 1, "_ve_new": 5, "m": 1, "tags": ["a"], "at": None}]


def test_a_window_past_the_end_of_time_is_cut_there():
    chunk = chunk_of([Insert(INF - 5, INF, Row(m=1))], {"m": pl.Int64})
    for length in (5, 6, INF - 1):
        assert sliding({"m": pl.Int64}, length).process(0, chunk).elements() == [Insert(INF - 5, INF, Row(m=1))]
