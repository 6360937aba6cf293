"""A driver that is killed in the middle of a commit: what was committed stays, the rest never was.

The driver is a process of its own. It commits batch 0, then dies by SIGKILL at a given point of batch 1.
"""

import signal
import subprocess
import sys

import polars as pl
import pytest
from sinks.places import SCHEMA, DuckdbPlace, ParquetPlace, PostgresPlace, opened, send

from cedr import sinks
from cedr.columnar.chunk import chunk_of
from cedr.sinks.base import SinkTable
from cedr.temporal import Adjust, Cti, Insert, Row

TABLE = SinkTable("q", SCHEMA)
A = Row(m=1, v=1)
FIRST = [chunk_of([Insert(1, 3, A), Insert(1, 9, A), Cti(5)], SCHEMA)]
SECOND = [chunk_of([Adjust(1, 9, 7, A), Insert(2, 4, A), Insert(6, 8, A), Cti(6)], SCHEMA)]
AFTER_FIRST = [(1, 3, 1, 1), (1, 9, 1, 1)]
AFTER_SECOND = [(1, 3, 1, 1), (1, 7, 1, 1), (2, 4, 1, 1), (6, 8, 1, 1)]

DRIVER = """
import importlib, os, signal, sys
from cedr import sinks
from sinks.places import send
from sinks.test_crash import FIRST, SECOND, TABLE

make, where, point, when = sys.argv[1:]
sink = getattr(sinks, make)(*eval(where))
sink.open(TABLE)
send(sink, 0, FIRST)

module, name, method = point.split(":")
owner = getattr(importlib.import_module(module), name)
inner = getattr(owner, method)

def killed(*args, **kwargs):
    if when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    done = inner(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(owner, method, killed)
send(sink, 1, SECOND)
"""


def crash(make: str, where: tuple[str, ...], point: str, when: str) -> None:
    path = [p for p in sys.path if p]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{DRIVER}", make, repr(where), point, when],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


SINKS = "cedr.sinks"


@pytest.mark.parametrize(
    ("point", "when", "batch"),
    [
        ("manifest:ShardFiles:to_bytes", "before", 0),  # the first shard has written its files
        ("parquet_table:ParquetSink:commit", "before", 0),  # all shards have
        ("manifest:Manifest:write", "before", 0),  # the files are in the folder
        ("manifest:Manifest:write", "after", 1),  # the commit is done, old files are still there
        ("parquet_table:ParquetSink:_sweep", "after", 1),  # nobody knows yet
    ],
)
def test_parquet(tmp_path, point, when, batch):
    crash("parquet", (str(tmp_path),), f"{SINKS}.{point}", when)
    there = AFTER_SECOND if batch else AFTER_FIRST
    assert sinks.read_parquet(tmp_path).rows() == there, "right even before anybody has cleaned up"
    sink = opened(ParquetPlace(tmp_path), TABLE)
    assert sink.last_batch() == batch
    assert sorted(pl.read_parquet(tmp_path / "*.parquet").rows()) == there, "opening sweeps what the crash left"
    send(sink, 1, SECOND)
    assert sink.read().rows() == AFTER_SECOND
    assert sorted(pl.read_parquet(tmp_path / "*.parquet").rows()) == AFTER_SECOND


@pytest.mark.parametrize(
    ("point", "when", "batch"),
    [("_apply", "before", 0), ("_fill", "after", 0), ("_apply", "after", 0), ("commit", "after", 1)],
)
def test_databases(sql_place, point, when, batch):
    here = sql_place()
    match here:
        case PostgresPlace():
            crash(
                "postgres",
                (here.server.dsn, f"{here.schema}.answers"),
                f"{SINKS}.postgres_table:PostgresSink:{point}",
                when,
            )
        case DuckdbPlace():
            crash("duckdb", (here.sink().path, "answers"), f"{SINKS}.duckdb_table:DuckdbSink:{point}", when)
    sink = opened(here, TABLE)
    assert sink.last_batch() == batch
    assert sink.read().rows() == (AFTER_SECOND if batch else AFTER_FIRST)
    send(sink, 1, SECOND)
    assert sink.read().rows() == AFTER_SECOND
