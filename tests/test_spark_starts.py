"""Java, pyspark, pyarrow and pandas, as locked, work together: Arrow batches go to a Python worker and come back."""

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
