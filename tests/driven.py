"""A query that runs in a driver of its own, some of whose processes are lost; its answer must be right all the same."""

import sys
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from crash import disagreement
from crashes.victim import EXECUTOR, SHARD, Victim, command_line, send
from crashes.workload import QUERIES, Size, tables

__all__ = ["EXECUTOR", "SHARD", "Size", "command_line", "driver", "send"]


@contextmanager
def driver(folder, master, size):
    """A driver that runs; at the end of the block it has to come to its own end, with the right answer."""
    given = tables(QUERIES["sites"](), size)
    given.write(folder / "in")
    victim = Victim(folder, "sites", str(folder), "parquet", master)
    try:
        yield victim
        victim.finish()
        assert disagreement("sites", "parquet", given, folder) is None
        assert victim.left() == []
    finally:
        victim.end()
