"""One suite over the local runtime, Spark batch and Spark streaming: the same query, the same canonical answer.

The examples run on all of them too, in tests/test_examples.py.
"""

import os

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from plan.catalogue import MERGES, QUERIES, SCHEMA, payloads
from runtime.spark.tables import COLUMNS, history_of, table_of

import cedr
from cedr.temporal import canonical
from cedr.testing import assert_same, slicings, streams

ALL = {**QUERIES, "merge of plans": MERGES["merge of plans"]}

on_spark = settings(
    max_examples=int(os.environ.get("CEDR_EXAMPLES_ON_SPARK", "1")),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
"""A micro-batch on Spark takes half a second; `test_shard` runs the same tasks thousands of times without it."""


@st.composite
def pieces_of(draw, query):
    """Streams for all sources of a query, large enough to be meaningful in one try, in up to two micro-batches."""
    options = {"closed": True, "infinite": query.infinite, "adjusts": query.infinite}
    whole = {name: draw(streams(payloads, max_size=12, **options).filter(long)) for name in ("a", "b")[: query.ports]}
    return {name: in_few(draw(slicings(stream))) for name, stream in whole.items()}


def long(stream) -> bool:
    """The first examples drawn are the simplest, which test little."""
    return len(stream) > 8


def in_few(pieces, most=2):
    """The last pieces as one."""
    return [*pieces[: most - 1], [element for piece in pieces[most - 1 :] for element in piece]]


def write_files(folder, source, pieces) -> str:
    """A file for each micro-batch."""
    place = folder / source
    place.mkdir()
    for number, piece in enumerate(pieces):
        table_of(piece, SCHEMA).write_parquet(place / f"{number}.parquet")
    return str(place)


@pytest.mark.parametrize("name", ALL)
@on_spark
@given(data=st.data())
def test_all_runtimes_agree(name, data, spark, tmp_path_factory):
    query = ALL[name]
    stream = query.stream(**COLUMNS)
    pieces = data.draw(pieces_of(query))
    whole = {source: [e for piece in cut for e in piece] for source, cut in pieces.items()}
    expected = query.oracle(*(canonical(elements) for elements in whole.values()))
    folder = tmp_path_factory.mktemp("same")
    places = {source: write_files(folder, source, cut) for source, cut in pieces.items()}

    local = stream.run({source: table_of(elements, SCHEMA) for source, elements in whole.items()})
    assert_same(local.history(), expected)

    static = {source: spark.read.parquet(place) for source, place in places.items()}
    batch = pl.DataFrame(stream.batch(spark, static).toArrow())
    assert_same(history_of(batch, stream.schema), expected)

    files = {source: cedr.files(place, max_files=1) for source, place in places.items()}
    running = stream.start(
        spark,
        files,
        sink=cedr.sinks.memory(),
        checkpoint=str(folder / "checkpoint"),
        trigger={"availableNow": True},
        close=True,
    )
    running.await_termination()
    assert_same(history_of(running.table(), stream.schema), expected)
    assert running.late().height == 0
