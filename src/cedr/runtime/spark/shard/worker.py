"""Tuning of Spark's Python workers between our tasks.

After each task a worker collects garbage, which visits every object. Before each task it reads the contents of every
zip file on its path again. With all our imports this took 80 and 25 ms in every task of a micro-batch (decision 10). So
permanent objects are frozen, which hides them from the collector, and the zip files are removed from the import cache
until an import needs them.
"""

import gc
import sys
from collections.abc import Iterator
from itertools import count
from typing import TypeVar
from zipimport import zipimporter

from cedr.runtime.spark.shard.errors import with_task_errors

T = TypeVar("T")

FIRST_TASKS = 4
"""By then a worker has imported everything: it has read a source and called a shard."""
tasks = count(1)


def in_worker(results: Iterator[T]) -> Iterator[T]:
    """The results of a task; our errors reach the user, and the worker is prepared for the next task."""
    yield from with_task_errors(results)
    if next(tasks) <= FIRST_TASKS:
        gc.collect()
        gc.freeze()
    for place, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[place]
