"""Java, pyspark, pyarrow and pandas, as locked, work together: Arrow batches go to a Python worker and come back."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    session = (
        SparkSession.builder.master("local[2]")
        .appName("test_spark_starts")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()


def test_rows_come_back_from_python_workers(spark: SparkSession) -> None:
    rows = [(i, i / 8, f"text {i}") for i in range(1000)]

    def unchanged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            assert isinstance(batch, pa.RecordBatch)
            yield batch

    frame = spark.createDataFrame(rows, "id long, load double, name string").repartition(4)
    back = frame.mapInArrow(unchanged, frame.schema)
    assert sorted(tuple(row) for row in back.collect()) == rows
    assert back.toPandas().sort_values("id").to_numpy().tolist() == [list(row) for row in rows]


def test_pyspark_comes_from_the_environment_and_not_from_an_archive() -> None:
    """What comes from an archive is compiled at every start of a Python, of which a query has several."""
    named = {"PYTHONPATH": "/spark/python/lib/pyspark.zip:/spark/python/lib/py4j-1-src.zip:/mine"}
    code = "import sys; print([path for path in sys.path if path.startswith(('/spark', '/mine'))])"
    shown = subprocess.run([sys.executable, "-c", code], env={**os.environ, **named}, capture_output=True, text=True)
    assert shown.stdout == "['/mine']\n"
