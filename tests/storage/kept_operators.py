"""The state of many kinds of operators, kept in the tests, so that a later version proves that it reads it.

    python tests/storage/kept_operators.py

writes it again with the code of today: after a release, or when a query of the catalogue below changes. A version that
reads what this one writes, but not what is kept, does not read the release before.
"""

import sys
import tarfile
import tempfile
from pathlib import Path
from random import Random

import polars as pl

KEPT = Path(__file__).parent / "kept" / "operators.tar.xz"
NAMES = (
    "aggregate",
    "agg without group",
    "top_k",
    "distinct",
    "coalesce",
    "difference",
    "join",
    "left join",
    "anti join",
    "session",
    "sort",
    "clip",
    "align, finalize",
    "pattern sequence",
    "pattern unless",
    "pattern first consume",
    "automaton",
    "regex",
)
"""Of the catalogue of queries."""
DONE, PARTS = 3, 5
"""The micro-batches that were run, and all: a snapshot after 1 and the log of 2."""
CHANGES = "changes.arrow"


def inputs(name: str):
    """The input of a query, by source."""
    from plan.catalogue import QUERIES
    from runtime.spark.test_rescale import dense_stream

    query, random = QUERIES[name], Random(NAMES.index(name))
    return {source: dense_stream(random, 5, query.infinite) for source in ("a", "b")[: query.ports]}


def stream(name: str):
    from plan.catalogue import QUERIES
    from runtime.spark.tables import COLUMNS

    return QUERIES[name].stream(**COLUMNS)


def tables(name: str, batch: int):
    from plan.catalogue import SCHEMA
    from runtime.spark.tables import table_of

    cut = {s: e[len(e) * batch // PARTS : len(e) * (batch + 1) // PARTS] for s, e in inputs(name).items()}
    return {source: [table_of(elements, SCHEMA)] for source, elements in cut.items()}


def place_of(folder: Path, name: str) -> Path:
    return folder / str(NAMES.index(name))


def unpack(folder: Path) -> Path:
    with tarfile.open(KEPT) as archive:
        archive.extractall(folder, filter="data")
    return folder


def write() -> None:
    from runtime.spark.cluster import Cluster
    from storage.kept_checkpoint import anonymous

    from cedr.runtime.spark.shard import state
    from cedr.storage import snapshots

    state.MANY_BATCHES, state.MANY_BYTES, snapshots.SMALL_TABLE = 2, 400, 400  # files of every kind
    with tempfile.TemporaryDirectory() as temporary:
        for name in NAMES:
            place = place_of(Path(temporary), name)
            place.mkdir()
            cluster = Cluster(stream(name), str(place / "checkpoint"), 2)
            changes = [cluster.run(batch, cluster.packets(batch, tables(name, batch))) for batch in range(DONE)]
            pl.concat(changes).write_ipc(place / CHANGES)
        with tarfile.open(KEPT, "w:xz") as archive:
            for path in sorted(Path(temporary).rglob("*/checkpoint/state")):
                archive.add(path, path.relative_to(temporary), filter=anonymous)
            for path in sorted(Path(temporary).rglob(CHANGES)):
                archive.add(path, path.relative_to(temporary), filter=anonymous)


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1])]
    write()
