"""A disk that loses what was not synced when the power fails, and one that is full.

Everything is done on a real folder, and a record is kept of what a power cut would leave: of each file the content that
was synced, of each folder the names that were synced and, in order, what was done to them since. At the power cut the
folder is made to look as it might afterwards. Of every folder some first part of the changes since its last sync has
survived, as a journal keeps them; content that was not synced is there in part, as zeros, or not at all: so a name may
have survived and its content not.
"""

import errno
import io
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random

from cedr.storage.disk import Body, Disk, Parts
from cedr.storage.seal import Header


class PowerCut(BaseException):
    """Nothing may continue after it, so it is not an error that code catches."""


@dataclass
class Content:
    """Of a file; a folder has none, but a name that can be lost."""

    now: bytes
    synced: bool
    is_folder: bool = False


@dataclass
class Names:
    """A folder: the names a power cut leaves, and what was done since: a content, or None when a name was removed."""

    synced: dict[str, Content] = field(default_factory=dict)
    since: list[dict[str, Content | None]] = field(default_factory=list)

    def now(self) -> dict[str, Content]:
        return after(self.synced, self.since)


def after(names: dict[str, Content], changes: list[dict[str, Content | None]]) -> dict[str, Content]:
    found = dict(names)
    for change in changes:
        for name, content in change.items():
            if content is None:
                found.pop(name, None)
            else:
                found[name] = content
    return found


class FailingDisk(Disk):
    """`cut` is the number of the step before which the power fails, from 0; `full` that of the write for which there is
    no room. A disk that `lies` reports a sync that it did not do."""

    def __init__(self, cut: int | None = None, full: int | None = None, lies: bool = False) -> None:
        self.cut, self.full, self.lies = cut, full, lies
        self.steps, self.writes = 0, 0
        self.folders: dict[str, Names] = {}

    def _step(self) -> None:
        if self.steps == self.cut:
            raise PowerCut
        self.steps += 1

    def _at(self, path: str) -> tuple[Names, str]:
        folder, name = os.path.split(path)
        return self.folders.setdefault(folder, Names()), name

    def write(self, path: str, parts: Parts, sync: bool) -> None:
        self._step()
        folder, name = self._at(path)
        content = Content(b"".join(parts), synced=False)
        folder.since.append({name: content})
        self.writes += 1
        if self.writes - 1 == self.full:
            Path(path).write_bytes(content.now[: len(content.now) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        Path(path).write_bytes(content.now)
        if sync:
            self._step()
            content.synced = not self.lies

    def fill(self, path: str, body: Body, header: Header) -> None:
        body(buffer := io.BytesIO())
        header.add(buffer.getvalue())
        self.write(path, [header.line(), buffer.getvalue()], sync=False)

    def sync(self, path: str) -> None:
        self._step()
        folder, name = self._at(path)
        if (content := folder.now().get(name)) is not None and not self.lies:
            content.synced = True

    def sync_folder(self, path: str) -> None:
        self._step()
        folder = self.folders.setdefault(path, Names())
        if not self.lies:
            folder.synced, folder.since = folder.now(), []

    def rename(self, old: str, new: str) -> None:
        self._step()
        (source, name), (target, new_name) = self._at(old), self._at(new)
        content = source.now()[name]
        if source is target:
            source.since.append({name: None, new_name: content})
        else:
            target.since.append({new_name: content})
            source.since.append({name: None})
        super().rename(old, new)

    def link(self, old: str, new: str) -> None:
        self._step()
        (source, name), (target, new_name) = self._at(old), self._at(new)
        super().link(old, new)
        target.since.append({new_name: source.now()[name]})

    def remove(self, path: str) -> None:
        self._step()
        folder, name = self._at(path)
        folder.since.append({name: None})
        super().remove(path)

    def soon(self, work: Callable[[], None]) -> Callable[[], None]:
        """As late as possible, when its result is needed: so nothing may rely on it before. And in this thread, so that
        steps have the same numbers in every run."""
        return cache(work)

    def make(self, path: str) -> None:
        self._step()
        if not os.path.isdir(path):
            folder, name = self._at(path)
            folder.since.append({name: Content(b"", True, is_folder=True)})
            super().make(path)

    def fail(self, random: Random) -> None:
        """Make all folders look as they might after the power has failed now, and forget what was before."""
        for path, names in sorted(self.folders.items()):  # a folder before those in it
            left = after(names.synced, names.since[: random.randint(0, len(names.since))])
            lost = names.now().keys() | names.synced.keys()
            for name in lost if os.path.isdir(path) else ():
                if os.path.isdir(where := os.path.join(path, name)):
                    if name not in left:
                        shutil.rmtree(where)
                elif os.path.exists(where):
                    os.unlink(where)
            for name, content in left.items() if os.path.isdir(path) else ():
                if not content.is_folder:
                    content.now = content.now if content.synced else damaged(content.now, random)
                    content.synced = True
                    Path(path, name).write_bytes(content.now)
            names.synced, names.since = left if os.path.isdir(path) else {}, []
        self.cut = None


def damaged(content: bytes, random: Random) -> bytes:
    """What may be left of content that was not synced."""
    length = random.randint(0, len(content))
    return random.choice([content, b"", content[:length], bytes(len(content)), content[:length] + bytes(length)])
