"""Machine code that many processes cache in one folder: only one process writes at a time.

Numba caches what it has compiled next to the source, in numbered files and an index from argument types to files. It
takes the next free number of the index it has read, so two processes that compile a function for different types at the
same time take the same number. The index of one then names the file of the other, and a process that loads it reads
numbers of one type as another. Shards start together, so this happens often on a new machine.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from numba.core import caching

LOCK = ".cedr.lock"


class SharedCacheFile(caching.IndexDataCacheFile):  # type: ignore[misc]
    """Index and file are written together, and are not read in between."""

    def save(self, key: Any, data: Any) -> None:
        with locked(self._cache_path, fcntl.LOCK_EX):
            super().save(key, data)

    def load(self, key: Any) -> Any:
        with locked(self._cache_path, fcntl.LOCK_SH):
            return super().load(key)


@contextmanager
def locked(folder: str, kind: int) -> Iterator[None]:
    """The lock is the operating system's: it is free as soon as its process is gone."""
    try:
        lock = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:  # the folder does not exist yet, or is not writable
        yield
        return
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, kind)
        yield
    finally:
        os.close(lock)


def use() -> None:
    """For all functions that are compiled from now on."""
    caching.IndexDataCacheFile = SharedCacheFile
