"""Which files exist: complete ones, recognized by their names."""

import glob
import os
import re
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass

from cedr.sources.files.settings import Files, Order
from cedr.temporal.errors import QueryError

UNFINISHED = (".tmp", ".temp", ".part", ".partial", ".inprogress", ".crdownload", ".swp", "._copying_", "~")
"""Suffixes that writers and copiers give to incomplete files."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Identifies the content of a file."""

    size: int
    modified: int

    def __str__(self) -> str:
        return f"{self.size} bytes"


def stamp(path: str) -> Stamp | None:
    """None if the file does not exist."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return Stamp(found.st_size, found.st_mtime_ns)


def visible(name: str) -> bool:
    return not name.startswith((".", "_")) and not name.lower().endswith(UNFINISHED)


def check_place(settings: Files) -> None:
    """With a misspelt path the query would wait forever."""
    fixed = re.split(r"[*?\[]", settings.path, maxsplit=1)[0] if settings.is_glob else settings.path
    place = os.path.dirname(fixed) if settings.is_glob else fixed
    if not os.path.exists(place):
        kind = "folder" if settings.is_glob else "file or folder"
        raise QueryError(f"files({settings.path!r}): there is no {kind} {place!r}")


def listed(settings: Files, known: Container[str] = ()) -> Iterator[str]:
    """The paths of all existing files that are not known, in no particular order."""
    if settings.is_glob:
        fixed = os.path.dirname(re.split(r"[*?\[]", settings.path, maxsplit=1)[0])
        for path in glob.iglob(settings.path, recursive=True):
            if (
                path not in known
                and all(map(visible, path[len(fixed) :].strip(os.sep).split(os.sep)))
                and os.path.isfile(path)
            ):
                yield path
    elif os.path.isdir(settings.path):
        yield from below(settings.path, known)
    elif os.path.exists(settings.path) and settings.path not in known:
        yield settings.path


def below(folder: str, known: Container[str]) -> Iterator[str]:
    with suppress(FileNotFoundError), os.scandir(folder) as found:  # a folder may be removed meanwhile
        for item in found:
            if item.path not in known and visible(item.name):
                if item.is_dir():
                    yield from below(item.path, known)
                else:
                    yield item.path


def complete(settings: Files, known: Container[str] = ()) -> list[str]:
    """The paths of existing files that are not known, without gaps: earlier files of a folder are never missing.

    Listing a folder while files are added may return the second file and not the first. Numbered files must not be read
    out of order, so the folder is listed twice: the second list is complete up to the last name of the first.
    """
    last: dict[str, str] = {}
    for path in listed(settings, known):
        folder, name = os.path.split(path)
        last[folder] = max(name, last.get(folder, ""))
    if not last:
        return []
    again = (os.path.split(path) for path in listed(settings, known))
    return [os.path.join(folder, name) for folder, name in again if name <= last.get(folder, "")]


def in_order(found: dict[str, Stamp], order: Order) -> list[str]:
    if order == "name":
        return sorted(found)
    return sorted(found, key=lambda path: (found[path].modified, path))
