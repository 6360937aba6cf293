"""What the tests on Spark share."""

import pytest
from postgres_server import postgres
from pyspark.sql import SparkSession
from s3_server import any_storage, bucket, s3

import cedr

__all__ = ["any_storage", "bucket", "postgres", "s3", "spark"]


@pytest.fixture
def spark() -> SparkSession:
    """The session of this process, started when there is none: a test elsewhere may have stopped it."""
    here = {"spark__driver__host": "127.0.0.1", "spark__driver__bindAddress": "127.0.0.1"}
    return cedr.spark_session("local[2]", "tests", spark__sql__shuffle__partitions=2, **here)
