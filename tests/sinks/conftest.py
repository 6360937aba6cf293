"""The stores every sink is tested on, each as a place where any number of sinks can be opened one after another."""

from pathlib import Path
from uuid import uuid4

import pytest
from postgres_server import postgres
from runtime.spark.conftest import spark
from sinks.places import DuckdbPlace, MemoryPlace, ParquetPlace, PostgresPlace

__all__ = ["place", "postgres", "postgres_place", "quick_place", "spark", "sql_place", "stored_place"]

STORES = {"parquet": ParquetPlace, "postgres": PostgresPlace, "duckdb": DuckdbPlace, "memory": MemoryPlace}


def make(store: str, folder: Path, request: pytest.FixtureRequest):
    """A function that gives a new place each time it is called: hypothesis needs many in one test."""
    if store == "postgres":
        server = request.getfixturevalue("postgres")
        return lambda: PostgresPlace(server, server.fresh_schema())
    return lambda: STORES[store](folder / uuid4().hex)


@pytest.fixture(scope="module", params=STORES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    return make(request.param, tmp_path_factory.mktemp("sinks"), request)


@pytest.fixture(scope="module", params=["parquet", "postgres", "duckdb"])
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
