"""Spark's Python workers between our tasks.

After each task a worker collects all garbage, for which it looks at every object there is. Before each task it reads
the contents of every zip file on its path again. With all that we import this took 80 and 25 ms in every task of a
micro-batch (decision 10). So what is there for good is put where the collector does not look, and the zip files are
forgotten until an import needs them.
"""

import gc
import sys
from collections.abc import Iterator
from itertools import count
from typing import TypeVar
from zipimport import zipimporter

from cedr.runtime.spark.shard.errors import carrying

T = TypeVar("T")

FIRST_TASKS = 4
"""By then a worker has imported what it needs: it has read a source and asked a shard."""
tasks = count(1)


def in_worker(results: Iterator[T]) -> Iterator[T]:
    """The results of a task, whose errors of ours reach the user; the worker is made ready for the next one."""
    yield from carrying(results)
    if next(tasks) <= FIRST_TASKS:
        gc.collect()
        gc.freeze()
    for place, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[place]
