"""Storage that all machines of a cluster reach: buckets of S3, Google Cloud Storage and Azure, and HDFS.

    s3://bucket/path, s3a://bucket/path             the same; Spark knows it as s3a://
    gs://bucket/path
    abfss://container@account.dfs.core.windows.net/path
    hdfs://namenode/path

A store has whole files: they are read, written, created if the name is free, listed and removed. There is no rename, as
it would be a copy. `create` is a conditional put, which the store itself decides: of all that create a file exactly one
succeeds. HDFS has no such put, but a rename that refuses a name that is taken.

Who may enter, and where the store is, comes from `cedr.storage.remote_settings`.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache

from cedr.secret import remember_credentials, without_credentials
from cedr.storage import remote_settings
from cedr.temporal.errors import CedrError, StorageError

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
S3, GS, AZURE = ("s3", "s3a"), ("gs",), ("abfss", "abfs")
ODD = re.compile(r"[\x00-\x1f\x7f\\{}^%`\[\]\"<>~#|*?]")
"""Characters that obstore writes in another way than Spark."""


class RemoteError(StorageError):
    """A store that cannot be used: not reachable, without the right to enter, or without this bucket."""

    def __init__(self, place: str, why: str) -> None:
        self.file = place
        CedrError.__init__(self, f"{without_credentials(place)} cannot be used: {without_credentials(why)}")


class NoStoreError(Exception):
    """Why there is no store at a URI, as what follows it in a sentence."""


def is_remote(place: str) -> bool:
    return SCHEME.match(place) is not None and not place.startswith("file://")


def for_spark(place: str) -> str:
    """The name under which Spark knows a place."""
    return re.sub(r"^s3://", "s3a://", place)


class Store(ABC):
    """The files of a bucket, or of a file system, by their paths in it."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """The content; raises FileNotFoundError."""

    @abstractmethod
    def write(self, path: str, content: bytes) -> None:
        """Write or replace, in one step."""

    @abstractmethod
    def create(self, path: str, content: bytes) -> bool:
        """Write if there is no file of this name yet; whether we did. Exactly one of several writers does, and it may
        get False if the answer to its first request was lost."""

    @abstractmethod
    def has(self, path: str) -> bool: ...

    @abstractmethod
    def names(self, folder: str) -> tuple[list[str], list[str]]:
        """The names of the files and of the folders in a folder."""

    @abstractmethod
    def below(self, folder: str) -> list[str]:
        """The paths, from the folder on, of all files in it and in folders below."""

    @abstractmethod
    def remove(self, paths: Sequence[str]) -> None:
        """Missing files are not an error."""

    def make(self, folder: str) -> None:  # noqa: B027  buckets have no folders
        """A folder, and those above."""


def store_of(place: str) -> tuple[Store, str]:
    """The store of a place, and the path in it. All folders of a bucket share its connections."""
    scheme, _, rest = place.partition("://")
    authority, _, path = rest.partition("/")
    remember_credentials(place)
    try:
        store, base = store_at(f"{scheme.lower()}://{authority}", remote_settings.version())
    except NoStoreError as e:
        raise CedrError(f"{without_credentials(place)} {e}") from None
    path = "/".join(part for part in path.split("/") if part)
    if odd := ODD.search(path):
        raise CedrError(f"{without_credentials(place)}: a remote folder's name cannot have the character {odd[0]!r}")
    return store, f"{base}/{path}" if base else path


@lru_cache(maxsize=64)
def store_at(root: str, version: int) -> tuple[Store, str]:
    """A bucket or file system, and how its paths begin. `version` is that of the settings."""
    scheme = root.partition("://")[0]
    if scheme in (*S3, *GS, *AZURE):
        try:
            from cedr.storage.object_store import bucket
        except ModuleNotFoundError as e:
            if e.name != "obstore":
                raise
            raise CedrError(f"{scheme}:// needs the package obstore: pip install 'cedr[remote]'") from e
        return bucket(scheme, root), ""
    from cedr.storage.arrow_store import file_system

    return file_system(scheme, root)
