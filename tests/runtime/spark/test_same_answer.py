"""One suite over the local runtime, Spark batch and Spark streaming: the same query, the same canonical answer."""

import importlib.util
import os
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from plan.catalogue import MERGES, QUERIES, SCHEMA, payloads
from polars.testing import assert_frame_equal
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
def told(draw, query):
    """Streams for all sources of a query, large enough to say something in one try, in up to three micro-batches."""
    telling = {"closed": True, "infinite": query.infinite, "adjusts": query.infinite}
    whole = {name: draw(streams(payloads, max_size=12, **telling).filter(long)) for name in ("a", "b")[: query.ports]}
    return {name: in_few(draw(slicings(stream))) for name, stream in whole.items()}


def long(stream) -> bool:
    """The first examples drawn are the simplest, which say little."""
    return len(stream) > 8


def in_few(pieces, most=3):
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
    pieces = data.draw(told(query))
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


# --- examples ------------------------------------------------------------------------------------------------------


def stock_ticker():
    example = example_of("stock_ticker")
    arrivals = [{"readings": table_of(elements, example.readings.schema)} for _, elements in example.ARRIVALS]
    return example.averages, arrivals, example.answers()[-1]


def web_traffic():
    example = example_of("web_traffic")
    return example.counts, [{"hits": pl.DataFrame(batch)} for batch in example.batches()], example.answers()[-1]


def system_maintenance(level, latency):
    example = example_of("system_maintenance")
    query = example.alerts.with_consistency(level).with_latency(latency)
    schema = {"machine": pl.String}
    arrivals = []
    for _, source, elements in example.ARRIVALS:
        told = {"patched": [], "came_up": [], source: elements}
        arrivals.append({name: table_of(words, schema) for name, words in told.items()})
    *_, (_, result) = example.answers(query)
    return query, arrivals, result


def example_of(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[3] / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLES = {
    "stock_ticker": stock_ticker,
    "web_traffic": web_traffic,
    "system_maintenance, middle": lambda: system_maintenance("middle", "eager"),
    "system_maintenance, strong": lambda: system_maintenance("strong", "ordered"),
}


@pytest.mark.filterwarnings("ignore:source .* makes no promise about progress")
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_end_with_the_same_answer_on_spark(name, spark, tmp_path):
    query, arrivals, local = EXAMPLES[name]()
    for number, tables in enumerate(arrivals):
        for source, table in tables.items():
            (tmp_path / source).mkdir(exist_ok=True)
            table.write_parquet(tmp_path / source / f"{number:02d}.parquet")
    files = {source: cedr.files(tmp_path / source, max_files=1) for source in arrivals[0]}
    running = query.start(
        spark,
        files,
        sink=cedr.sinks.memory(),
        checkpoint=str(tmp_path / "checkpoint"),
        trigger={"availableNow": True},
        close=True,
    )
    running.await_termination()
    assert_frame_equal(running.table(), local.table())
    assert running.late().height == local.late().height
    if not local.late().height:
        batch = pl.DataFrame(query.batch(spark, {s: cedr.files(tmp_path / s) for s in arrivals[0]}).toArrow())
        assert_same(history_of(batch, query.schema), local.history())
