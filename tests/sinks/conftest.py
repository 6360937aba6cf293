"""The stores every sink is tested on, each as a place where any number of sinks can be opened one after another."""

from pathlib import Path
from uuid import uuid4

import pytest
from postgres_server import postgres
from runtime.spark.conftest import spark
from s3_server import s3
from sinks.places import DuckdbPlace, MemoryPlace, ParquetPlace, PostgresPlace

from cedr.storage import remote_settings

__all__ = [
    "local_place",
    "place",
    "postgres",
    "postgres_place",
    "quick_place",
    "s3",
    "spark",
    "sql_place",
    "stored_place",
]

STORES = {"parquet": ParquetPlace, "postgres": PostgresPlace, "duckdb": DuckdbPlace, "memory": MemoryPlace}


def make(store: str, folder: Path, request: pytest.FixtureRequest):
    """A function that gives a new place each time it is called: hypothesis needs many in one test."""
    if store == "s3":
        server = request.getfixturevalue("s3")
        remote_settings.use(server.hadoop)
        bucket = f"s3a://{server.new_bucket()}"
        return lambda: ParquetPlace(f"{bucket}/{uuid4().hex}")
    if store == "postgres":
        server = request.getfixturevalue("postgres")
        return lambda: PostgresPlace(server, server.fresh_schema())
    return lambda: STORES[store](folder / uuid4().hex)


@pytest.fixture(scope="module", params=[*STORES, "s3"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    return make(request.param, tmp_path_factory.mktemp("sinks"), request)


@pytest.fixture(scope="module", params=STORES)
def local_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Without the bucket, for which Spark needs settings: `runtime/spark/test_remote.py` has it on Spark."""
    return make(request.param, tmp_path_factory.mktemp("sinks"), request)


@pytest.fixture(scope="module", params=["parquet", "s3", "postgres", "duckdb"])
def stored_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    return make(request.param, tmp_path_factory.mktemp("sinks"), request)


@pytest.fixture(scope="module", params=["parquet", "memory"])
def quick_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    return make(request.param, tmp_path_factory.mktemp("sinks"), request)


@pytest.fixture(scope="module", params=["postgres", "duckdb"])
def sql_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    return make(request.param, tmp_path_factory.mktemp("sinks"), request)


@pytest.fixture(scope="module")
def postgres_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    return make("postgres", tmp_path_factory.mktemp("sinks"), request)
