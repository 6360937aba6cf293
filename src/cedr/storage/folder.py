"""A folder of files that are written whole or not at all, on a local disk or anywhere Arrow can write.

Each file carries a checksum (see `seal`), and what is read back is what was written, or a `DamagedFileError`. What
others read or write, such as Spark, is plain. On local disks a file is there after a power cut as soon as the call has
returned: content, then name, then folder are synced. Elsewhere that is the store's own promise.

`write_once` is for content that must never change once it may have been read: the first writer wins, and all writers
get the first one's content. On local disks this is exact. Elsewhere two simultaneous writers may both assume to be the
first; cedr then writes the same content.
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

from cedr.secret import remember_credentials, without_credentials
from cedr.storage import disk
from cedr.storage.disk import Body, Parts
from cedr.storage.seal import LONGEST_HEADER, DamageError, Header, check, check_parquet, header, sealed_parquet
from cedr.temporal.errors import CedrError, DamagedFileError, StorageError

NEW_CHECKPOINT = (
    "Restore the checkpoint and the table from the same backup, or start with an empty table and a new checkpoint"
)
TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}")
"""Names of files that are not complete."""

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
        remote = re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", place)
        self.place, self.label, self.remedy = place, label, remedy
        if remote and not place.startswith("file://"):
            remember_credentials(place)
            try:
                self.system, self.path = fs.FileSystem.from_uri(place)
            except (ValueError, OSError, NotImplementedError) as e:
                raise CedrError(f"{without_credentials(place)} cannot be used: {without_credentials(str(e))}") from None
            self.local = False
        else:
            self.system, self.path = fs.LocalFileSystem(), os.path.abspath(place.removeprefix("file://"))
            self.local = True

    def sub(self, name: str) -> "Folder":
        return Folder(f"{self.place.rstrip('/')}/{name}", self.label_of(name), self.remedy)

    def label_of(self, name: str) -> str:
        return f"{self.label}/{name}" if self.label else name

    def make(self) -> None:
        if not self.local:
            self.system.create_dir(self.path, recursive=True)
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
        found = self.system.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        return sorted(f.base_name for f in found if f.is_file and not f.base_name.startswith("."))

    def subfolders(self) -> list[str]:
        """The names of the folders in it."""
        found = self.system.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        return sorted(f.base_name for f in found if f.type == fs.FileType.Directory)

    def has(self, name: str) -> bool:
        return bool(self.system.get_file_info(f"{self.path}/{name}").is_file)

    @property
    def path_is_there(self) -> bool:
        return bool(self.system.get_file_info(self.path).type == fs.FileType.Directory)

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
        if self.local:
            return open(path, "rb")
        with self.system.open_input_file(path) as file:
            return io.BytesIO(file.read())

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
        """Into another folder; who relies on it syncs that folder."""
        old, new = f"{self.path}/{name}", f"{to.path}/{new_name}"
        if self.local:
            disk.local.rename(old, new)
        else:
            self.system.move(old, new)

    def remove(self, names: list[str]) -> None:
        for name in names:
            path = f"{self.path}/{name}"
            if self.local:
                disk.local.remove(path)
            else:
                with suppress(FileNotFoundError):
                    self.system.delete_file(path)

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
        found = self.system.get_file_info(fs.FileSelector(self.path, allow_not_found=True, recursive=True))
        for info in found:
            if info.is_file and unfinished.fullmatch(info.base_name):
                folder = info.path.removesuffix(info.base_name).removeprefix(self.path).strip("/")
                (self.sub(folder) if folder else self).remove([info.base_name])

    def _put(self, name: str, parts: Parts, sync: Sync) -> None:
        with self._hidden(name) as path:
            self._write(path, parts, sync != "none")
            if self.local:
                disk.local.rename(path, f"{self.path}/{name}")
                if sync == "folder":
                    disk.local.sync_folder(self.path)
            else:
                self.system.move(path, f"{self.path}/{name}")

    def _put_once(self, name: str, parts: Parts) -> bool:
        """Whether we were the first. What is there is synced in either case: the first may have been killed."""
        if not self.local:
            if self.has(name):
                return False
            self._put(name, parts, "none")
            return True
        with self._hidden(name) as path:
            self._write(path, parts, sync=True)
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

    def _write(self, path: str, parts: Parts, sync: bool) -> None:
        if self.local:
            disk.local.write(path, parts, sync)
        else:
            with self.system.open_output_stream(path) as file:
                for part in parts:
                    file.write(part)

    @contextmanager
    def _hidden(self, name: str, path: str = "") -> Iterator[str]:
        """The path of a file until it is complete; nothing is left of it when it cannot be written."""
        path = path or self._hidden_path(name)
        try:
            yield path
        except (OSError, pl.exceptions.PolarsError) as e:
            with suppress(OSError):
                self.system.delete_file(path)
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
                self.folder._write(path, self.parts, sync=True)

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
