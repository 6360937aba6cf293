"""A folder of small files that are written whole or not at all, on a local disk or anywhere Arrow can write.

`write_once` is for what must never change once somebody may have read it: the first writer wins, and everybody gets the
first writer's words. On local disks that is exact. Elsewhere two writers at the same instant may both believe to be the
first; cedr writes the same content then.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyarrow import fs

from cedr.secret import remember_credentials, without_credentials
from cedr.temporal.errors import CedrError


class Folder:
    def __init__(self, place: str) -> None:
        """`place` is a path, or a URI such as `s3://bucket/path`."""
        remote = re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", place)
        self.place = place
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
        return Folder(f"{self.place.rstrip('/')}/{name}")

    def make(self) -> None:
        self.system.create_dir(self.path, recursive=True)

    def names(self) -> list[str]:
        """The files that are whole, in order of their names."""
        found = self.system.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        return sorted(f.base_name for f in found if f.is_file and not f.base_name.startswith("."))

    def has(self, name: str) -> bool:
        return bool(self.system.get_file_info(f"{self.path}/{name}").is_file)

    def read(self, name: str) -> bytes:
        with self.system.open_input_file(f"{self.path}/{name}") as file:
            return bytes(file.read())

    def find(self, name: str) -> bytes | None:
        """The content, or None when there is no such file."""
        try:
            return self.read(name)
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write or replace."""
        temporary = self._temporary(name, content)
        self.system.move(temporary, f"{self.path}/{name}")

    @contextmanager
    def writing(self, name: str) -> Iterator[Any]:
        """A file to write into, for contents that are large; it is there, whole, at the end."""
        temporary = f"{self.path}/.{name}.{uuid4().hex}"
        with open(temporary, "wb") if self.local else self.system.open_output_stream(temporary) as file:
            yield file
        self.system.move(temporary, f"{self.path}/{name}")

    def reading(self, name: str) -> Any:
        """A file to read from, for contents that are large."""
        path = f"{self.path}/{name}"
        return open(path, "rb") if self.local else self.system.open_input_file(path)

    def write_once(self, name: str, content: bytes) -> bytes:
        """The content that stands under this name afterwards: ours, or that of whoever was first."""
        if not self.local:
            if (there := self.find(name)) is not None:
                return there
            self.write(name, content)
            return content
        temporary = self._temporary(name, content)
        try:
            os.link(temporary, f"{self.path}/{name}")
        except FileExistsError:
            return self.read(name)
        finally:
            os.unlink(temporary)
        return content

    def remove(self, names: list[str]) -> None:
        for name in names:
            try:
                self.system.delete_file(f"{self.path}/{name}")
            except FileNotFoundError:
                continue

    def _temporary(self, name: str, content: bytes) -> str:
        path = f"{self.path}/.{name}.{uuid4().hex}"
        if self.local:
            Path(path).write_bytes(content)
        else:
            with self.system.open_output_stream(path) as file:
                file.write(content)
        return path
