"""Everything that is done to files on a local disk: written, synced, renamed, removed.

It is one small class so that a test can put another disk under all of cedr's storage: one that loses what was not
synced when the power fails, or one that is full.
"""

import errno
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from io import RawIOBase
from typing import BinaryIO

from cedr.storage.seal import Header

Parts = Iterable[bytes | memoryview]
Body = Callable[[BinaryIO], object]
NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM)
"""Errors of file systems that cannot sync a folder, or do not allow opening it."""


class SealedFile(RawIOBase):
    """A file to write to, whose header gets everything that is written."""

    def __init__(self, file: BinaryIO, header: Header) -> None:
        self.file, self.header = file, header

    def writable(self) -> bool:
        return True

    def write(self, content: bytes | memoryview) -> int:  # type: ignore[override]
        self.header.add(content)
        return self.file.write(content)


class Disk:
    def write(self, path: str, parts: Parts, sync: bool) -> None:
        """A new file; with `sync` its content survives a power cut. Its name does so after `sync_folder`."""
        with open(path, "wb") as file:
            for part in parts:
                file.write(part)
            if sync:
                file.flush()
                os.fsync(file.fileno())

    def fill(self, path: str, body: Body, header: Header) -> None:
        """A new file, not synced, whose body is written by a function. The header before it depends on it."""
        with open(path, "wb") as file:
            file.write(bytes(header.size))
            body(SealedFile(file, header))  # type: ignore[arg-type]  # all that writers of a body use
            file.seek(0)
            file.write(header.line())

    def sync(self, path: str) -> None:
        """The content of any file."""
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def sync_folder(self, path: str) -> None:
        """The names in a folder."""
        try:
            self.sync(path)
        except OSError as e:
            if e.errno not in NO_SYNC:
                raise

    def make(self, path: str) -> None:
        """A folder whose parent exists."""
        with suppress(FileExistsError):
            os.mkdir(path)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def link(self, old: str, new: str) -> None:
        """A second name for a file; raises if the name is taken."""
        os.link(old, new)

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(path)

    def soon(self, work: Callable[[], None]) -> Callable[[], None]:
        """Do this in another thread. The result waits until it is done, and raises what it raised."""
        return threads().submit(work).result


@cache
def threads() -> ThreadPoolExecutor:
    """Threads that wait for the disk."""
    return ThreadPoolExecutor(thread_name_prefix="cedr-disk")


local = Disk()
