"""The file log: which files belong to which offset. Offset n means the first n entries.

An entry is written before Spark gets its offset and never changes, so a restart reads the same files with the same
splits for the same offsets. There is one exception: when the content of a file stopped the batch, no row of the batch
was used, and a repaired file may replace the bad one.

    <n>.json          entry n, from 1
    <m>-<n>.json      entries m to n: compacted, once Spark has committed them
    bad/<n>.<file>    a task could not read this file of entry n
"""

import json
import re
from collections.abc import Callable

from cedr.sources.files.entry import BatchFiles
from cedr.sources.files.listing import Stamp, stamp
from cedr.storage.epoch import Epoch
from cedr.storage.folder import Folder
from cedr.temporal.errors import DamagedFileError, QueryError

SEGMENT = 256
"""Number of entries in one compacted file. It bounds the number of files that a start reads one by one."""

Plan = Callable[[list[tuple[str, Stamp]], str | None], BatchFiles]
"""Makes an entry from files, given the clock if it is known."""


class FileLog:
    def __init__(self, folder: Folder, epoch: Epoch | None = None) -> None:
        """`epoch` is that of the driver, if the log is remote."""
        self.folder, self.bad, self.epoch = folder, folder.sub("bad"), epoch
        self.folder.make()
        self.seen: dict[str, Stamp] = {}
        self.clock: str | None = None
        self.ended = False
        self.length = 0
        self._compacted = 0
        self._recent: dict[int, BatchFiles] = {}
        self._load()

    def append(self, entry: BatchFiles) -> int:
        """Returns the offset after the entry."""
        if self.epoch is not None:
            self.epoch.check()
        number, content = self.length + 1, entry.to_json()
        if (there := self.folder.write_once(f"{number}.json", content)) != content:
            if self.epoch is not None:
                return self._adopt(there)
            raise QueryError(
                f"checkpoint {self.folder.place!r}: another query has just written entry {number}; "
                "use a separate checkpoint for every query"
            )
        self._add(entry)
        return number

    def _adopt(self, content: bytes) -> int:
        """The entry that an older driver wrote at the last moment is as good as ours. A newer one's is not for us."""
        assert self.epoch is not None
        self.epoch.check()
        self._add(BatchFiles.from_json(content))
        return self.length

    def entry(self, number: int) -> BatchFiles:
        """Entry n, starting at 1."""
        if number in self._recent:
            return self._recent[number]
        start = (number - 1) // SEGMENT * SEGMENT
        content = self.folder.find(f"{start + 1}-{start + SEGMENT}.json")
        if content is None:
            raise self._missing(number)
        return segment_entries(content)[number - start - 1]

    def _missing(self, number: int) -> DamagedFileError:
        return self.folder.damaged(f"{number}.json", "it is missing; only it records which files a micro-batch read")

    def check_reached(self, number: int) -> None:
        """Spark has reached this entry, so it must exist."""
        if number > self.length:
            raise self._missing(self.length + 1)

    def compact(self, done: int) -> None:
        """Merge entries that Spark has committed into segments."""
        while done - self._compacted >= SEGMENT:
            numbers = range(self._compacted + 1, self._compacted + SEGMENT + 1)
            content = b"[" + b",\n".join(self._recent[n].to_json() for n in numbers) + b"]"
            self.folder.write_once(f"{numbers[0]}-{numbers[-1]}.json", content)
            self._compacted += SEGMENT
            self.folder.remove([f"{n}.json" for n in numbers])
            for n in numbers:
                del self._recent[n]

    def replan(self, number: int, plan: Plan) -> None:
        """Plan an entry again when an unreadable file has new content."""
        for mark in [name for name in self.bad.names() if name.startswith(f"{number}.")]:
            entry = self.entry(number)
            file = entry.files[int(mark.partition(".")[2])]
            now = stamp(file.path)
            if now is not None and now != file.stamp:
                repaired = plan([(f.path, now if f is file else f.stamp) for f in entry.files], entry.clock)
                self.folder.write(f"{number}.json", repaired.to_json())
                self._recent[number] = repaired
                self.seen.update(repaired.stamps)
                self.bad.remove([mark])

    def _load(self) -> None:
        spans = sorted(span for name in self.folder.names() if (span := entry_span(name)))
        for first, last in spans:
            if last > first:
                self._compacted = last
                for entry in segment_entries(self.folder.read(f"{first}-{last}.json")):
                    self._add(entry, keep=False)
        for first, last in spans:
            if first == last == self.length + 1:
                self._add(BatchFiles.from_json(self.folder.read(f"{first}.json")))
        self.check_reached(max((last for _, last in spans), default=0))

    def _add(self, entry: BatchFiles, keep: bool = True) -> None:
        self.length += 1
        self.seen.update(entry.stamps)
        self.clock = self.clock or entry.clock
        self.ended = self.ended or entry.ends
        if keep:
            self._recent[self.length] = entry


def report_bad(folder: Folder, number: int, file: int) -> None:
    """Record that a task could not read this file of entry n."""
    bad = folder.sub("bad")
    bad.make()
    bad.write(f"{number}.{file}", b"")


def entry_span(name: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"(\d+)(?:-(\d+))?\.json", name)
    return (int(found[1]), int(found[2] or found[1])) if found else None


def segment_entries(content: bytes) -> list[BatchFiles]:
    return [BatchFiles.from_json(json.dumps(entry).encode()) for entry in json.loads(content)]
