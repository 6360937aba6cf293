"""What one Python has: its version, its packages, its clock, and whether it reaches the checkpoint.

An executor may not have cedr, so this module is sent there by value and imports only Python's own modules, until it has
found cedr.
"""

import os
import platform
import socket
import sys
import time
from importlib import metadata
from typing import Any

CEDR, PYTHON = "cedr", "Python"
PACKAGES = ("polars", "pyarrow", "numba", "numpy")
CHECKED_FILE = "query.json"
"""The driver has written it with the random name of the checkpoint."""


def look(place: str | None, expected: str, settings: dict[str, str]) -> dict[str, Any]:
    """`expected` is the driver's version of cedr: no other is asked about the checkpoint at `place`, which is reached
    with the driver's `settings` of remote stores."""
    found: dict[str, Any] = {
        "at": time.time(),
        "host": socket.gethostname(),
        "folder": os.getcwd(),
        "executable": sys.executable,
        PYTHON: platform.python_version(),
        CEDR: version_of_cedr(),
    }
    found.update((package, version_of(package)) for package in PACKAGES)
    if place is not None and found[CEDR] == expected and all(found[package] for package in PACKAGES):
        found.update(look_at_checkpoint(place, settings))
    return found


def version_of_cedr() -> str | None:
    try:
        import cedr
    except ImportError:
        return None
    return str(cedr.__version__)


def version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def look_at_checkpoint(place: str, settings: dict[str, str]) -> dict[str, Any]:
    """`content` of the file that the driver has written, and `trouble` with reading it or writing one next to it."""
    import uuid

    from cedr.storage import remote_settings
    from cedr.storage.folder import Folder

    remote_settings.use(settings)
    content = None
    name = f".reach.{uuid.uuid4().hex}"  # if it is left over, the next start sweeps it away
    try:
        folder = Folder(place)
        content = folder.find_plain(CHECKED_FILE)
        if content is not None:
            folder.write_plain(name, b"")
            folder.remove([name])
    except Exception as e:
        return {"content": content, "trouble": f"{type(e).__name__}: {e}"}
    return {"content": content, "trouble": None}
