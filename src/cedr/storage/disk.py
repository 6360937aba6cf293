"""Everything that is done to files on a local disk: written, synced, renamed, removed.

It is one small class so that a test can put another disk under all of cedr's storage: one that loses what was not
synced when the power fails, or one that is full.
"""

import errno
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from typing import BinaryIO

Parts = Iterable[bytes | memoryview]
Body = Callable[[BinaryIO], object]
Head = Callable[[memoryview], bytes]
NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM)
"""Errors of file systems that cannot sync a folder, or do not allow opening it."""


class Disk:
    def write(self, path: str, parts: Parts, sync: bool) -> None:
        """A new file; with `sync` its content survives a power cut. Its name does so after `sync_folder`."""
        with open(path, "wb") as file:
            for part in parts:
                file.write(part)
            if sync:
                file.flush()
                os.fsync(file.fileno())

    def fill(self, path: str, body: Body, head: Head, size: int) -> None:
        """A new file, not synced, whose body is written by a function. The `size` bytes before it depend on it."""
        with open(path, "wb+") as file:
            file.write(bytes(size))
            file.flush()
            body(file)
            file.flush()
            with mmap(file.fileno(), 0, access=ACCESS_READ) as whole, memoryview(whole)[size:] as written:
                start = head(written)
            file.seek(0)
            file.write(start)

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


local = Disk()
