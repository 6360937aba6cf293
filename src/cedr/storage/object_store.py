"""Buckets of S3, Google Cloud Storage and Azure, through obstore.

A file is created with a conditional put (`If-None-Match: *`), so the store decides who was first. Errors of obstore
become one of cedr that names the place, what is wrong and what to do.
"""

import errno
import os
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import obstore
from obstore import exceptions
from obstore.store import AzureStore, GCSStore, S3Store

from cedr.secret import Secret, without_credentials
from cedr.storage import remote_settings
from cedr.storage.remote import AZURE, GS, NoStoreError, RemoteError, Store

BUCKET = re.compile(r"\w+://(?:(?P<key>[^:@/]+):(?P<secret>[^@]*)@)?(?P<bucket>[^/@:]+)")
CONTAINER = re.compile(r"\w+://(?P<container>[^/@:]+)@(?P<account>[^/@:.]+)\.[^/@:]+")
RETRIES: Any = {"max_retries": 6, "retry_timeout": timedelta(seconds=60)}
"""With pauses that grow, these take some seconds: for a store that is busy, not for one that is away."""
CLIENT: Any = {"connect_timeout": "5s", "timeout": "120s"}
MACHINE_METADATA = "169.254.169.254"
"""Where machines in a cloud ask for their own rights; only those without other credentials do."""


def bucket(scheme: str, root: str) -> "ObjectStore":
    """The bucket with this URI."""
    found = (CONTAINER if scheme in AZURE else BUCKET).fullmatch(root)
    if found is None:
        form = "abfss://container@account.dfs.core.windows.net/path" if scheme in AZURE else f"{scheme}://bucket/path"
        raise NoStoreError(f"is not a place in a store; it has the form {form}")
    options = options_of(scheme, found.groupdict())
    endpoint = options.get("endpoint", "")
    client = {**CLIENT, "allow_http": True} if endpoint.startswith("http://") else CLIENT
    kind: Any = AzureStore if scheme in AZURE else GCSStore if scheme in GS else S3Store
    name = found["container" if scheme in AZURE else "bucket"]
    try:
        return ObjectStore(kind(name, **options, client_options=client, retry_config=RETRIES), root, endpoint)
    except (exceptions.BaseError, ValueError) as e:
        raise NoStoreError(f"cannot be used: {without_credentials(first_line(e))}") from None


def options_of(scheme: str, parts: dict[str, str]) -> dict[str, Any]:
    """What obstore is given besides the name."""
    settings = remote_settings.current()
    if scheme in AZURE:
        return settings.azure(parts["account"], parts["container"])
    if scheme in GS:
        return settings.gs()
    options = settings.s3(parts["bucket"])
    if parts["key"]:
        options |= {"access_key_id": unquote(parts["key"]), "secret_access_key": unquote(parts["secret"])}
        Secret(options["secret_access_key"])
    return options


class ObjectStore(Store):
    """A bucket."""

    def __init__(self, store: Any, root: str, endpoint: str) -> None:
        self.store, self.root, self.endpoint = store, root, endpoint

    def read(self, path: str) -> bytes:
        with self._explained(path):
            return bytes(obstore.get(self.store, path).bytes())

    def write(self, path: str, content: bytes) -> None:
        with self._explained(path):
            obstore.put(self.store, path, content)

    def create(self, path: str, content: bytes) -> bool:
        with self._explained(path):
            try:
                # In parts, the condition would be checked for each put of a part, before the file appears.
                obstore.put(self.store, path, content, mode="create", use_multipart=False)
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                return False
        return True

    def has(self, path: str) -> bool:
        with self._explained(path):
            try:
                obstore.head(self.store, path)
            except (exceptions.NotFoundError, FileNotFoundError):
                return False
        return True

    def names(self, folder: str) -> tuple[list[str], list[str]]:
        with self._explained(folder, listing=True):
            found = obstore.list_with_delimiter(self.store, folder)
        files = [last(file["path"]) for file in found["objects"]]
        folders = [last(path) for path in found["common_prefixes"]]
        return [name for name in files if name not in folders], folders  # a marker of a folder has its name

    def below(self, folder: str) -> list[str]:
        with self._explained(folder, listing=True):
            found = obstore.list(self.store, folder, chunk_size=1000)
            return [file["path"].removeprefix(folder).lstrip("/") for files in found for file in files]

    def remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            with self._explained(path), suppress(exceptions.NotFoundError, FileNotFoundError):
                obstore.delete(self.store, path)

    @contextmanager
    def _explained(self, path: str, listing: bool = False) -> Iterator[None]:
        """Errors of obstore become ours, and a missing file that of Python."""
        try:
            yield
        except FileNotFoundError as e:
            raise self._missing(e, path, listing) from None
        except exceptions.NotFoundError as e:
            raise self._missing(e, path, listing) from None
        except exceptions.BaseError as e:
            raise RemoteError(self._shown(path), why_not(str(e), self.endpoint)) from None

    def _shown(self, path: str) -> str:
        return f"{self.root}/{path}"

    def _missing(self, error: Exception, path: str, listing: bool) -> Exception:
        """A list is never missing, unless its bucket is."""
        code = CODE.search(str(error))
        if not listing and (code is None or code[1] in NO_FILE):
            return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return RemoteError(self._shown(path), why_not(str(error) if code else NO_BUCKETS[0], self.endpoint))


CODE = re.compile(r"<Code>(\w+)</Code>")
NO_FILE = ("NoSuchKey", "BlobNotFound", "PathNotFound", "ResourceNotFound")
NO_BUCKETS = ("NoSuchBucket", "ContainerNotFound", "FilesystemNotFound")
NO_BUCKET = "there is no such bucket{}; create it, or correct its name"
REFUSED = (
    *("InvalidAccessKeyId", "UserNotFound", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"),
    *("AuthenticationFailed", "AuthorizationFailure", "AccessDenied", "Forbidden", "Unauthorized"),
)


def at_endpoint(endpoint: str) -> str:
    return f" at {endpoint}" if endpoint else ""


def why_not(text: str, endpoint: str) -> str:
    """What is wrong, and what to do about it, in an error of obstore."""
    if MACHINE_METADATA in text or "metadata.google" in text or "MissingCredential" in text:
        return (
            f"there are no credentials for it on {socket.gethostname()}, neither in Spark's settings (such as "
            "spark.hadoop.fs.s3a.access.key) nor in the environment (such as AWS_ACCESS_KEY_ID), and the machine has "
            "no rights of its own"
        )
    if any(code in text for code in NO_BUCKETS):
        return NO_BUCKET.format(at_endpoint(endpoint))
    if code := next((code for code in REFUSED if code in text), None):
        return (
            f"the store{at_endpoint(endpoint)} refuses the credentials ({code}); check those in Spark's settings (such "
            "as spark.hadoop.fs.s3a.access.key and .secret.key) or in the environment (AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY), and what they may read and write"
        )
    if "error sending request" in text or "Connect" in text or "dns error" in text:
        return (
            f"there is no answer{' from ' + endpoint if endpoint else ''}; check the network, and the endpoint in "
            "Spark's settings (such as spark.hadoop.fs.s3a.endpoint) or in the environment (AWS_ENDPOINT_URL)"
        )
    return first_line(text)


def first_line(error: object) -> str:
    """obstore adds pages for its developers."""
    return str(error).partition("\n\nDebug source")[0].strip()


def last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
