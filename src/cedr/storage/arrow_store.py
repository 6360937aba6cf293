"""File systems that Arrow reaches, such as HDFS."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from pyarrow import fs

from cedr.secret import without_credentials
from cedr.storage.remote import NoStoreError, Store

NO_HDFS = (
    ". HDFS is reached through Arrow, which needs libhdfs of a Hadoop installation on every machine: set HADOOP_HOME, "
    "JAVA_HOME and CLASSPATH (`hadoop classpath --glob`), and ARROW_LIBHDFS_DIR if it is elsewhere"
)


def file_system(scheme: str, root: str) -> tuple["ArrowStore", str]:
    """A file system of Arrow, and how its paths begin."""
    try:
        system, base = fs.FileSystem.from_uri(root)
    except (ValueError, OSError, NotImplementedError) as e:
        raise NoStoreError(
            f"cannot be used: {without_credentials(str(e))}{NO_HDFS if scheme == 'hdfs' else ''}"
        ) from None
    return ArrowStore(system), base.rstrip("/") if scheme != "hdfs" else ""


class ArrowStore(Store):
    """A file system of Arrow, such as HDFS: files are written under a hidden name and renamed."""

    def __init__(self, system: Any) -> None:
        self.system = system

    def read(self, path: str) -> bytes:
        with self.system.open_input_file(path) as file:
            return bytes(file.read())

    def write(self, path: str, content: bytes) -> None:
        with self._hidden(path, content) as hidden:
            if self.has(path):
                self.system.delete_file(path)  # HDFS does not replace a file
            self.system.move(hidden, path)

    def create(self, path: str, content: bytes) -> bool:
        if self.has(path):
            return False
        with self._hidden(path, content) as hidden:
            try:
                self.system.move(hidden, path)
            except OSError:
                if self.has(path):
                    return False
                raise
        return True

    @contextmanager
    def _hidden(self, path: str, content: bytes) -> Iterator[str]:
        folder, _, name = path.rpartition("/")
        hidden = f"{folder}/.{name}.{uuid4().hex}"
        try:
            with self.system.open_output_stream(hidden) as file:
                file.write(content)
            yield hidden
        finally:
            with suppress(OSError):
                self.system.delete_file(hidden)

    def has(self, path: str) -> bool:
        return bool(self.system.get_file_info(path).is_file)

    def names(self, folder: str) -> tuple[list[str], list[str]]:
        found = self.system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        folders = [f.base_name for f in found if f.type == fs.FileType.Directory]
        return [f.base_name for f in found if f.is_file], folders

    def below(self, folder: str) -> list[str]:
        found = self.system.get_file_info(fs.FileSelector(folder, allow_not_found=True, recursive=True))
        return [f.path.removeprefix(folder).lstrip("/") for f in found if f.is_file]

    def remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            with suppress(FileNotFoundError):
                self.system.delete_file(path)

    def make(self, folder: str) -> None:
        self.system.create_dir(folder, recursive=True)
