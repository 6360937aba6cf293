"""Which files of a folder are the table, and its last batch: one small JSON file with a checksum, written atomically.

A part is the table's share of one shard: files of settled tuples, which never change, and one file of open tuples,
which every batch with changes replaces. File names are never reused, so two equal parts are the same files.
"""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from cedr.sinks.base import SinkTable
from cedr.storage.folder import Folder
from cedr.temporal.time import MIN

FOLDER, START = "_cedr", "start.json"


@dataclass(frozen=True)
class TableFile:
    """`level`: how often its tuples were merged into a bigger file."""

    name: str
    rows: int
    level: int = 0


@dataclass(frozen=True)
class ShardFiles:
    """`cti`: the shard's progress; `open`: tuples that may still change; `settled`: tuples that cannot."""

    shard: int
    cti: int = MIN
    open: TableFile | None = None
    settled: tuple[TableFile, ...] = ()
    elsewhere: str = ""
    """While it is prepared: tuples to remove that another shard inserted before it was split. Arrow IPC as base64."""

    @property
    def files(self) -> tuple[TableFile, ...]:
        return (*self.settled, self.open) if self.open else self.settled

    @property
    def names(self) -> set[str]:
        return {file.name for file in self.files}

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def from_bytes(content: bytes) -> "ShardFiles":
        return ShardFiles.from_json(json.loads(content))

    @staticmethod
    def from_json(stored: dict[str, Any]) -> "ShardFiles":
        opened = TableFile(**stored["open"]) if stored["open"] else None
        return ShardFiles(
            stored["shard"],
            stored["cti"],
            opened,
            tuple(TableFile(**file) for file in stored["settled"]),
            stored.get("elsewhere", ""),
        )


@dataclass(frozen=True)
class Manifest:
    table: SinkTable
    batch: int | None = None
    parts: dict[int, ShardFiles] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        return {name for part in self.parts.values() for name in part.names}

    @property
    def file_name(self) -> str:
        return START if self.batch is None else f"{self.batch}.json"

    def write(self, folder: Folder) -> bool:
        """Whether it counts: in a remote folder the first of its batch does, even if a driver comes that has not
        noticed yet that it was replaced."""
        parts = list(map(asdict, self.parts.values()))
        content = json.dumps({"batch": self.batch, "table": self.table.to_json(), "parts": parts}, indent=1).encode()
        place = folder.sub(FOLDER)
        if folder.local or self.batch is None:
            place.write(self.file_name, content)
            return True
        return place.write_once(self.file_name, content) == content

    @staticmethod
    def names_in(folder: Folder) -> list[str]:
        """The manifests in a folder, the newest last."""
        found = [name for name in folder.sub(FOLDER).names() if name == START or name[:-5].isdigit()]
        return sorted(found, key=lambda name: -1 if name == START else int(name[:-5]))

    @staticmethod
    def newest(folder: Folder) -> "Manifest | None":
        names = Manifest.names_in(folder)
        while names:
            if (content := folder.sub(FOLDER).find(names[-1])) is not None:
                return Manifest.from_bytes(content)
            names = Manifest.names_in(folder)  # it was replaced by a newer one meanwhile
        return None

    @staticmethod
    def from_bytes(content: bytes) -> "Manifest":
        stored = json.loads(content)
        parts = [ShardFiles.from_json(part) for part in stored["parts"]]
        return Manifest(SinkTable.from_json(stored["table"]), stored["batch"], {part.shard: part for part in parts})
