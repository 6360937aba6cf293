"""A folder of files that are written whole or not at all, on a local disk or in a remote store.

Each file carries a checksum (see `seal`), and what is read back is what was written, or a `DamagedFileError`. What
others read or write, such as Spark, is plain. On local disks a file is there after a power cut as soon as the call has
returned: content, then name, then folder are synced. Elsewhere (`remote`) that is the store's own promise.

`write_once` is for content that must never change once it may have been read: the first writer wins, and all writers
get the first one's content. On local disks a hard link decides, in a store a conditional put.
"""

import errno
import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from typing import Any, BinaryIO, Literal, TypeVar
from uuid import uuid4

import numpy as np
import polars as pl
from pyarrow import fs

from cedr.secret import without_credentials
from cedr.storage import disk
from cedr.storage.disk import Body, Parts
from cedr.storage.remote import Store, is_remote, store_of
from cedr.storage.seal import LONGEST_HEADER, DamageError, Header, check, check_parquet, header, sealed_parquet
from cedr.temporal.errors import DamagedFileError, StorageError

NEW_CHECKPOINT = (
    "Restore the checkpoint and the table from the same backup, or start with an empty table and a new checkpoint"
)
TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}")
"""Names of files that are not complete."""

LOCAL = fs.LocalFileSystem()
FULL = (errno.ENOSPC, errno.EDQUOT)
BLOCK = 1 << 20
T = TypeVar("T")
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Sync = Literal["folder", "file", "none"]
"""What a power cut must not take: the file under its name; its content, while a later step syncs the folder; nothing,
for files that are written again anyhow."""


class Folder:
    def __init__(self, place: str, label: str = "", remedy: str = NEW_CHECKPOINT) -> None:
        """`place` is a path, or a URI such as `s3://bucket/path`. `label` is what the folder is called in the seals of
        its files: a path that stays the same when all is moved to another place. `remedy` is advice for the case that
        one of its files is damaged."""
        self.place, self.label, self.remedy = place, label, remedy
        self.local = not is_remote(place)
        self.path = os.path.abspath(place.removeprefix("file://")) if self.local else store_of(place)[1]

    @property
    def store(self) -> Store:
        """That of a remote folder. It is looked up, as it depends on the settings of this process."""
        return store_of(self.place)[0]

    def sub(self, name: str) -> "Folder":
        return Folder(f"{self.place.rstrip('/')}/{name}", self.label_of(name), self.remedy)

    def label_of(self, name: str) -> str:
        return f"{self.label}/{name}" if self.label else name

    def make(self) -> None:
        if not self.local:
            self.store.make(self.path)
            return
        missing, path = [], self.path
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        try:
            for path in reversed(missing):
                disk.local.make(path)
            for path in missing:
                disk.local.sync_folder(os.path.dirname(path))
        except OSError as e:
            if e.errno in FULL:
                raise StorageError(self.place, e) from e
            raise

    def names(self) -> list[str]:
        """The files that are whole, in order of their names."""
        if self.local:
            found = [f.base_name for f in self._listed() if f.is_file]
        else:
            found, _ = self.store.names(self.path)
        return sorted(name for name in found if not name.startswith("."))

    def subfolders(self) -> list[str]:
        """The names of the folders in it."""
        if not self.local:
            return sorted(self.store.names(self.path)[1])
        return sorted(f.base_name for f in self._listed() if f.type == fs.FileType.Directory)

    def _listed(self, recursive: bool = False) -> list[Any]:
        """What is in a local folder."""
        selector = fs.FileSelector(self.path, allow_not_found=True, recursive=recursive)
        return list(LOCAL.get_file_info(selector))

    def has(self, name: str) -> bool:
        path = f"{self.path}/{name}"
        return bool(LOCAL.get_file_info(path).is_file) if self.local else self.store.has(path)

    @property
    def path_is_there(self) -> bool:
        """Whether the folder exists; in a store, whether there is anything in it."""
        return os.path.isdir(self.path) if self.local else any(self.store.names(self.path))

    # --- reading -----------------------------------------------------------------------------------------------------

    def read(self, name: str) -> bytes:
        """The content as it was written."""
        with self._opened(name) as file:
            line, content = file.readline(LONGEST_HEADER), file.read()
        with self._checking(name):
            check(line, [content], self.label_of(name))
        return bytes(content)

    def read_body(self, name: str, read: Callable[[BinaryIO], T]) -> T:
        """What `read` makes of the content, which may be large: it is mapped and read instead of copied."""
        if not self.local:
            return read(io.BytesIO(self.read(name)))
        with open(f"{self.path}/{name}", "rb") as file:
            line = file.readline(LONGEST_HEADER)
            with self._checking(name), mapped(file, len(line)) as content:
                check(line, [content], self.label_of(name))
            file.seek(len(line))
            return read(file)

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        """Parts of the content, each in memory of its own; ranges are positions and lengths, in order. All of the file
        is verified."""
        with self._opened(name) as file, self._checking(name):
            line = file.readline(LONGEST_HEADER)
            size = file.seek(0, os.SEEK_END) - len(line)
            file.seek(len(line))
            if any(a + n > b for (a, n), (b, _) in pairwise([(0, 0), *ranges, (size, 0)])):
                raise DamageError(f"it has {size} bytes of content, and not the tables that a snapshot has there")
            found: list[Bytes] = []
            check(line, pieces(file, ranges, found), self.label_of(name))
        return found

    def find(self, name: str) -> bytes | None:
        """The content, or None if the file does not exist."""
        try:
            return self.read(name)
        except FileNotFoundError:
            return None

    def find_intact(self, name: str) -> bytes | None:
        """The content, or None if it is missing or damaged: for files that are soon rewritten."""
        with suppress(DamagedFileError):
            return self.find(name)
        return None

    def find_plain(self, name: str) -> bytes | None:
        """The bytes of a file that is not ours."""
        try:
            with self._opened(name) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def read_parquet(self, name: str) -> pl.DataFrame:
        return pl.read_parquet(io.BytesIO(self.read_parquet_bytes(name)))

    def read_parquet_bytes(self, name: str) -> bytes:
        with self._opened(name) as file:
            content = bytes(file.read())
        with self._checking(name):
            check_parquet(content, self.label_of(name))
        return content

    def damaged(self, name: str, what: str) -> DamagedFileError:
        """The error about one of the files; `what` is a sentence about it."""
        return DamagedFileError(self._shown(name), what, self.remedy)

    def _shown(self, name: str) -> str:
        return f"{without_credentials(self.place).rstrip('/')}/{name}"

    def _opened(self, name: str) -> Any:
        path = f"{self.path}/{name}"
        return open(path, "rb") if self.local else io.BytesIO(self.store.read(path))

    @contextmanager
    def _checking(self, name: str) -> Iterator[None]:
        """What is found to be wrong with a file becomes the error that names it."""
        try:
            yield
        except DamageError as e:
            raise self.damaged(name, str(e)) from None

    # --- writing -----------------------------------------------------------------------------------------------------

    def write(self, name: str, content: bytes | memoryview, sync: Sync = "folder") -> None:
        """Write or replace."""
        self._put(name, [header(self.label_of(name), content), content], sync)

    def write_body(self, name: str, body: Body) -> None:
        """Write or replace a file with a function that writes its content, which may be large. It is not synced."""
        label = self.label_of(name)
        if not self.local:
            body(buffer := io.BytesIO())
            self.write(name, buffer.getvalue())
            return
        with self._hidden(name) as path:
            disk.local.fill(path, body, Header(label))
            disk.local.rename(path, f"{self.path}/{name}")

    def write_plain(self, name: str, content: bytes, sync: Sync = "folder") -> None:
        """Write or replace a file that others read."""
        self._put(name, [content], sync)

    def write_parquet(
        self, name: str, content: bytes, *, label: str | None = None, once: bool = False, sync: Sync = "folder"
    ) -> None:
        """Write or replace a Parquet file, whose content is given; with `once` one that is there stays."""
        parts = sealed_parquet(label or self.label_of(name), content)
        if once:
            self._put_once(name, parts)
        else:
            self._put(name, parts, sync)

    def write_once(self, name: str, content: bytes) -> bytes:
        """The content under this name afterwards: ours, or that of the first writer."""
        ours = self._put_once(name, [header(self.label_of(name), content), content])
        return content if ours else self.read(name)

    @contextmanager
    def draft(self, name: str, content: bytes, first: Callable[[], None]) -> Iterator["Draft"]:
        """`write_once` while the caller does other work: `first` is done, then the content is written and synced. The
        file gets its name when the draft is published; if it is not, nothing is left of it."""
        draft = Draft(self, name, content, first)
        try:
            yield draft
        finally:
            draft.discard()

    def move(self, name: str, to: "Folder", new_name: str) -> None:
        """Into another folder on the same disk; who relies on it syncs that folder. Stores cannot do this."""
        disk.local.rename(f"{self.path}/{name}", f"{to.path}/{new_name}")

    def remove(self, names: list[str]) -> None:
        paths = [f"{self.path}/{name}" for name in names]
        if not self.local:
            self.store.remove(paths)
            return
        for path in paths:
            disk.local.remove(path)

    def sync_files(self, names: list[str]) -> None:
        """The content of files that were written without, or by others; a missing one has no content."""
        for name in names if self.local else ():
            try:
                disk.local.sync(f"{self.path}/{name}")
            except FileNotFoundError:
                continue
            except OSError as e:
                raise StorageError(self._shown(name), e) from e

    def sync(self) -> None:
        """All names in the folder."""
        if self.local:
            disk.local.sync_folder(self.path)

    def sweep(self, unfinished: re.Pattern[str] = TEMPORARY) -> None:
        """Remove what was not written to its end, here and in all folders below, when nobody else writes."""
        if self.local:
            paths = [info.path.removeprefix(self.path).lstrip("/") for info in self._listed(True) if info.is_file]
        else:
            paths = self.store.below(self.path)
        self.remove([path for path in paths if unfinished.fullmatch(path.rpartition("/")[2])])

    def _put(self, name: str, parts: Parts, sync: Sync) -> None:
        if not self.local:
            with self._writing(name):
                self.store.write(f"{self.path}/{name}", b"".join(parts))
            return
        with self._hidden(name) as path:
            disk.local.write(path, parts, sync != "none")
            disk.local.rename(path, f"{self.path}/{name}")
            if sync == "folder":
                disk.local.sync_folder(self.path)

    def _put_once(self, name: str, parts: Parts) -> bool:
        """Whether we were the first. What is there is synced in either case: the first may have been killed."""
        if not self.local:
            with self._writing(name):
                return self.store.create(f"{self.path}/{name}", b"".join(parts))
        with self._hidden(name) as path:
            disk.local.write(path, parts, sync=True)
            return self._link(path, name)

    def _link(self, path: str, name: str) -> bool:
        """Give a complete local file its name; whether it was free."""
        try:
            disk.local.link(path, f"{self.path}/{name}")
            return True
        except FileExistsError:
            return False
        finally:
            disk.local.remove(path)
            disk.local.sync_folder(self.path)

    @contextmanager
    def _hidden(self, name: str, path: str = "") -> Iterator[str]:
        """The path of a local file until it is complete; nothing is left of it when it cannot be written."""
        path = path or self._hidden_path(name)
        try:
            with self._writing(name):
                yield path
        except StorageError:
            with suppress(OSError):
                LOCAL.delete_file(path)
            raise

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        try:
            yield
        except (OSError, pl.exceptions.PolarsError) as e:
            raise StorageError(self._shown(name), e) from e

    def _hidden_path(self, name: str) -> str:
        return f"{self.path}/.{name}.{uuid4().hex}"


class Draft:
    """A file that becomes complete while its author does other work. Others see it when it is published."""

    def __init__(self, folder: Folder, name: str, content: bytes, first: Callable[[], None]) -> None:
        self.folder, self.name, self.first = folder, name, first
        self.parts = [header(folder.label_of(name), content), content]
        self.path = folder._hidden_path(name)
        self._finish = disk.local.soon(self._write)

    def _write(self) -> None:
        self.first()
        if self.folder.local:  # another store has no names that appear in one step, so `publish` writes there
            with self.folder._hidden(self.name, self.path) as path:
                disk.local.write(path, self.parts, sync=True)

    def publish(self) -> bool:
        """Whether it is the file under this name now. If not, another one was there first."""
        self._finish()
        if not self.folder.local:
            return self.folder._put_once(self.name, self.parts)
        with self.folder._hidden(self.name, self.path) as path:
            return self.folder._link(path, self.name)

    def discard(self) -> None:
        with suppress(Exception):  # reported by `publish`, or the author has failed before
            self._finish()
        if self.folder.local and os.path.exists(self.path):
            disk.local.remove(self.path)


@contextmanager
def mapped(file: BinaryIO, start: int) -> Iterator[memoryview]:
    """The content of a local file from a position on, without a copy."""
    if os.fstat(file.fileno()).st_size <= start:
        yield memoryview(b"")  # an empty file cannot be mapped
        return
    with mmap(file.fileno(), 0, access=ACCESS_READ) as whole, memoryview(whole)[start:] as content:
        yield content


def pieces(file: BinaryIO, ranges: Sequence[tuple[int, int]], found: list[Bytes]) -> Iterator[memoryview]:
    """All of the rest of a file, piece by piece; those of the ranges are added to `found`."""
    at = 0
    for start, size in ranges:
        yield from gap(file, start - at)
        piece = np.empty(size, dtype=np.uint8)
        found.append(piece)
        yield piece.data[: file.readinto(piece.data)]  # type: ignore[attr-defined]
        at = start + size
    yield from gap(file, None)


def gap(file: BinaryIO, size: int | None) -> Iterator[memoryview]:
    """This many bytes, or all up to the end."""
    while (size is None or size > 0) and (piece := file.read(BLOCK if size is None else min(size, BLOCK))):
        yield memoryview(piece)
        size = None if size is None else size - len(piece)


def checkpoint_folder(checkpoint: str) -> Folder:
    """Our part of a checkpoint, next to Spark's."""
    return Folder(f"{checkpoint.rstrip('/')}/cedr")
