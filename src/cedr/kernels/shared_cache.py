"""Machine code that many processes keep in one folder: who writes there does so alone.

Numba keeps what it has compiled beside the source, in numbered files and an index that says which file is for which
argument types. It takes the next free number of the index it has read, so two processes that compile a function for
different types at the same time take the same one. The index of one then names the file of the other, and whoever
loads it reads numbers of one type as another. Shards start together, so this is no rare moment on a new machine.
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
    except OSError:  # there is no such folder yet, or nobody may write there
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
