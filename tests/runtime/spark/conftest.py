"""What the tests on Spark share."""

import pytest
from pyspark.sql import SparkSession


@pytest.fixture
def spark() -> SparkSession:
    """The session of this process, started when there is none: a test elsewhere may have stopped it."""
    return (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "ERROR")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
