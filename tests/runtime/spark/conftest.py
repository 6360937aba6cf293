"""What the tests on Spark share."""

import pytest
from pyspark.sql import SparkSession

import cedr
from cedr.storage import disk
from cedr.storage.disk import Disk, Parts


@pytest.fixture
def spark() -> SparkSession:
    """The session of this process, started when there is none: a test elsewhere may have stopped it."""
    here = {"spark__driver__host": "127.0.0.1", "spark__driver__bindAddress": "127.0.0.1"}
    return cedr.spark_session("local[2]", "tests", spark__sql__shuffle__partitions=2, **here)


class WithoutSync(Disk):
    """No power fails in most tests, and a sync takes as long as a hundred writes."""

    def sync(self, path: str) -> None:
        pass

    def write(self, path: str, parts: Parts, sync: bool) -> None:
        super().write(path, parts, sync=False)


@pytest.fixture(scope="session", autouse=True)
def without_sync():
    """In this process; those of Spark and of shards sync as they do for users."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "local", WithoutSync())
        yield
