"""Snapshots: a manifest that describes a tree of values, and parts with its large tables.

    snapshot-000000000041         the manifest: one line of JSON, then the small tables
    part-000000000041-<token>     tables that were new in it
    part-000000000012-<token>     tables that are the same as in an earlier one

The manifest is an object with

    cedr, format     "snapshot" and FORMAT
    parts            the bytes of each part that it refers to
    tables           of each table what `tables.About` describes, where it begins (`at`), its bytes (`size`) and the
                     number of its part; without one it is in the manifest, after the line of JSON
    tree             the values, as in `tree`
    ...              anything else that its author adds

Arrays and frames that are saved never change. So one that is still the same object as in the snapshot before is not
written again. A tree may also have a `StoredTable` in the place of a table: it is not kept in memory once it is
written, and a large one gets a part of its own. A part is written again, without what is not needed any more, when less
than half of it is in use, and small parts are written again as one when there are many of them. A part is synced before
the manifest that needs it, and removed when it is not newer than the oldest manifest that is kept and none of them
needs it.
"""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple
from uuid import uuid4
from weakref import ref
from zlib import crc32

import numpy as np

from cedr.columnar.stored import LostTableError, StoredTable
from cedr.contracts import DEBUG
from cedr.storage.folder import Folder
from cedr.storage.plain import MalformedError
from cedr.storage.tables import About, Table, about, read_table, size_of, to_bytes, write_table
from cedr.storage.tree import TreeReader, TreeWriter
from cedr.temporal.errors import DamagedFileError

FORMAT = 3
"""Of the manifest, its tables and its parts; increase it when they change, so that readers refuse what they misread."""
READ_FORMATS = (1, 2, FORMAT)
OTHER_VERSION = "another version of cedr wrote it, and this one cannot read it"
SMALL_TABLE = 4096
"""Tables of up to this many bytes are in the manifest."""
LARGE_TABLE = 256 << 10
"""A stored table of at least this many bytes gets a part of its own."""
SHARED_PART = 1 << 20
"""A part with several tables has about this many bytes. Tables that are replaced together are next to each other, so
most parts are not needed any more at once."""
MANY_PARTS = 32
SNAPSHOT, PART = "snapshot", "part"


AnyTable = Table | StoredTable


class TablePlace(NamedTuple):
    """Where a table is; no part is the manifest."""

    part: str | None
    at: int
    size: int


class KnownTable(NamedTuple):
    """A table of the last snapshot, and the checksum of its values if contracts are checked."""

    table: Any
    place: TablePlace
    checksum: int


class SnapshotManifest(NamedTuple):
    """A manifest that was read; `small` are the bytes of the tables in it."""

    name: str
    json: dict[str, Any]
    parts: dict[str, int]
    places: list[TablePlace]
    abouts: list[About]
    small: memoryview


class CountingFile(io.RawIOBase):
    """Knows how much was written."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.size = file, 0

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self.file.write(content)
        self.size += len(content)
        return len(content)


class Snapshots:
    """The snapshots in a folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._known: dict[int, KnownTable] = {}
        """By identity, the tables of the last snapshot that was written or read here."""
        self._parts: dict[str, int] = {}
        """The bytes of the parts it refers to."""

    # --- writing -----------------------------------------------------------------------------------------------------

    def write(self, batch: int, tree: Any, afresh: Callable[[], Any] | None = None, **more: Any) -> int:
        """Write the snapshot after a micro-batch. Returns the number of bytes that had to be written. `afresh` makes a
        tree that needs nothing that is stored, for when a table is gone."""
        written, is_whole = 0, False
        try:
            written = self._write(batch, tree, more)
            is_whole = self._parts.keys() <= set(self.folder.names())
        except LostTableError:
            if afresh is None:
                raise
        if not is_whole:  # of another process, which has removed a part of ours
            self._known, self._parts = {}, {}
            written += self._write(batch, afresh() if afresh is not None else tree, more)
        return written

    def _write(self, batch: int, tree: Any, more: dict[str, Any]) -> int:
        writer = TreeWriter()
        values, tables = writer.json(tree), writer.tables
        places, kept = self._known_places(tables)
        new = [n for n, table in enumerate(tables) if n not in {*places, *kept} and nbytes_of(table) > SMALL_TABLE]
        alone = [n for n in new if isinstance(tables[n], StoredTable) and nbytes_of(tables[n]) >= LARGE_TABLE]
        together = [n for n in new if n not in {*alone}]
        groups = [*packed(kept, tables), *packed(together, tables), *([n] for n in alone)]
        written = self._write_parts(batch, groups, tables, places)
        small = self._small(tables, places)
        parts = self._sizes(places)
        content = content_of(parts, tables, places, {"batch": batch, **more}, values) + small
        self.folder.write(file_name(SNAPSHOT, batch), content)
        self._remember(tables, places, parts)
        return written + len(content)

    def _known_places(self, tables: list[AnyTable]) -> tuple[dict[int, TablePlace], list[int]]:
        """By number, the tables that are in a part already and stay there; and those whose part is written again. They
        get a part of their own: what has not changed for a while will not change soon."""
        there = set(self.folder.names())
        found = {}
        for n, table in enumerate(tables):
            place = self._stored_place(table) if isinstance(table, StoredTable) else self._known_place(table)
            if place is not None and place.part in there:
                found[n] = place
            elif isinstance(table, StoredTable) and not table.in_memory:
                raise LostTableError
        again = self._to_rewrite(found.values())
        stay = {n: place for n, place in found.items() if place.part not in again}
        return stay, [n for n in found if n not in stay]

    def _known_place(self, table: Table) -> TablePlace | None:
        known = self._known.get(id(table))
        if known is None or known.table() is not table:
            return None
        assert not DEBUG or known.checksum == checksum(table), "a saved array was changed in place"
        return known.place

    def _stored_place(self, table: StoredTable) -> TablePlace | None:
        """Of a table that was stored here; it may be one of another folder."""
        return table.place if table.place is not None and table.place.part in self._parts else None

    def _to_rewrite(self, places: Iterable[TablePlace]) -> set[str | None]:
        """Parts of which little is in use; and if there are many small ones, the smaller half of these."""
        used: Counter[str | None] = Counter()
        for place in set(places):
            used[place.part] += place.size
        again = {part for part, size in used.items() if part is not None and 2 * size < self._parts[part]}
        small = [part for part, size in used.most_common() if part not in again and size < LARGE_TABLE]
        return again | set(small[MANY_PARTS // 2 :] if len(small) >= MANY_PARTS else ())

    def _write_parts(
        self, batch: int, some: list[list[int]], tables: list[AnyTable], places: dict[int, TablePlace]
    ) -> int:
        """Write groups of tables to a part each; returns the bytes."""
        parts = [self._write_part(batch, numbers, tables, places) for numbers in some]
        if parts:
            self.folder.sync_files(parts)
            self.folder.sync()
        return sum(places[n].size for numbers in some for n in numbers)

    def _write_part(self, batch: int, numbers: list[int], tables: list[AnyTable], places: dict[int, TablePlace]) -> str:
        part = f"{file_name(PART, batch)}-{uuid4().hex}"

        def body(file: BinaryIO) -> None:
            counting = CountingFile(file)
            for n in numbers:
                start = counting.size
                self._write_table(counting, tables[n])
                places[n] = TablePlace(part, start, counting.size - start)

        self.folder.write_body(part, body)
        return part

    def _write_table(self, file: CountingFile, table: AnyTable) -> None:
        if isinstance(table, StoredTable) and not table.in_memory:  # it moves to another part
            part, at, size = table.place
            file.write(self.folder.read_ranges(part, [(at, size)])[0])
            return
        write_table(file, content_of_table(table))  # type: ignore[arg-type]  # all that writers of a table use

    def _small(self, tables: list[AnyTable], places: dict[int, TablePlace]) -> bytes:
        """The other tables, which get their places after the line of JSON."""
        small = bytearray()
        for n, table in enumerate(tables):
            if n not in places:
                content = to_bytes(content_of_table(table))
                places[n] = TablePlace(None, len(small), len(content))
                small += content
        return bytes(small)

    def _sizes(self, places: dict[int, TablePlace]) -> dict[str, int]:
        """The bytes of each part that is in use."""
        parts: dict[str, int] = {}
        for part, at, size in places.values():
            if part is not None:
                parts[part] = max(parts.get(part, 0), self._parts.get(part, 0), at + size)
        return parts

    def _remember(self, tables: Sequence[AnyTable], places: Mapping[int, TablePlace], parts: dict[str, int]) -> None:
        self._parts = parts
        self._known = {}
        for n, table in enumerate(tables):
            if isinstance(table, StoredTable):
                table.keep() if places[n].part is None else table.store(places[n])
            elif places[n].part is not None:
                self._known[id(table)] = KnownTable(ref(table), places[n], checksum(table) if DEBUG else 0)

    # --- reading -----------------------------------------------------------------------------------------------------

    def batches(self) -> list[int]:
        return [batch_of(name) for name in self.folder.names() if name.startswith(f"{SNAPSHOT}-")]

    def manifest(self, batch: int) -> SnapshotManifest:
        """What a snapshot consists of; its tables are not read."""
        name = file_name(SNAPSHOT, batch)
        content = self.folder.read(name)
        if not content.startswith(b'{"cedr":'):
            raise self.folder.damaged(name, OTHER_VERSION)
        try:
            return manifest_of(name, content)
        except OtherFormatError:
            raise self.folder.damaged(name, OTHER_VERSION) from None
        except Exception as e:
            raise self.folder.damaged(name, f"it is not a snapshot ({e})") from None

    def read(self, manifest: SnapshotManifest) -> Any:
        """The tree of a snapshot."""
        tables: dict[int, Table] = {}
        for part in (None, *manifest.parts):
            tables |= self._tables(manifest, part)
        try:
            places = [place if place.part is not None else None for place in manifest.places]
            tree = TreeReader([tables[n] for n in range(len(places))], places).tree(manifest.json["tree"])
        except MalformedError as e:
            raise self.folder.damaged(manifest.name, str(e)) from None
        self._remember([tables[n] for n in range(len(tables))], dict(enumerate(manifest.places)), dict(manifest.parts))
        return tree

    def _tables(self, manifest: SnapshotManifest, part: str | None) -> dict[int, Table]:
        numbers = [n for n, place in enumerate(manifest.places) if place.part == part]
        numbers.sort(key=lambda n: manifest.places[n].at)
        ranges = [(manifest.places[n].at, manifest.places[n].size) for n in numbers]
        if part is None:
            contents = [np.frombuffer(manifest.small[at : at + size], np.uint8).copy() for at, size in ranges]
        else:
            contents = self._read_part(manifest, part, ranges)
        found = {}
        for n, content in zip(numbers, contents, strict=True):
            try:
                found[n] = read_table(content, manifest.abouts[n])
            except MalformedError as e:
                raise self.folder.damaged(part or manifest.name, str(e)) from None
        return found

    def _read_part(self, manifest: SnapshotManifest, part: str, ranges: list[tuple[int, int]]) -> list[Any]:
        try:
            return self.folder.read_ranges(part, ranges)
        except FileNotFoundError:
            raise self.folder.damaged(part, f"it is missing, and {manifest.name} requires it") from None

    # --- removing ----------------------------------------------------------------------------------------------------

    def forget_before(self, oldest: int) -> None:
        """Remove the snapshots before a micro-batch, and parts that the others do not need."""
        batches = self.batches()
        self.folder.remove([file_name(SNAPSHOT, batch) for batch in batches if batch < oldest])
        try:
            needed = {part for batch in batches if batch >= oldest for part in self.manifest(batch).parts}
        except DamagedFileError:
            return  # an older one, which is not needed, and nobody knows its parts
        parts = [name for name in self.folder.names() if name.startswith(f"{PART}-") and batch_of(name) <= oldest]
        self.folder.remove([name for name in parts if name not in needed])


class OtherFormatError(Exception):
    """A manifest of another version."""


def content_of(
    parts: dict[str, int], tables: list[AnyTable], places: dict[int, TablePlace], more: dict[str, Any], values: Any
) -> bytes:
    """The line of JSON of a manifest."""
    numbers = {part: number for number, part in enumerate(parts)}
    described = [about_of(table) | place_json(places[n], numbers) for n, table in enumerate(tables)]
    head = {"cedr": SNAPSHOT, "format": FORMAT, **more, "parts": parts, "tables": described, "tree": values}
    return json.dumps(head, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def place_json(place: TablePlace, numbers: dict[str, int]) -> dict[str, Any]:
    where = {"at": place.at, "size": place.size}
    return where if place.part is None else {"part": numbers[place.part], **where}


def manifest_of(name: str, content: bytes) -> SnapshotManifest:
    """Verifies all but the tree and the tables."""
    line, _, small = content.partition(b"\n")
    head = json.loads(line, parse_constant=no_constant)
    if head["cedr"] != SNAPSHOT or head["format"] not in READ_FORMATS:
        raise OtherFormatError
    parts, names, _ = head["parts"], [*head["parts"]], head["tree"]
    if any(not is_part(part) or type(size) is not int for part, size in parts.items()):
        raise ValueError("its list of parts is damaged")
    places = [
        TablePlace(names[number(t["part"])] if "part" in t else None, number(t["at"]), number(t["size"]))
        for t in head["tables"]
    ]
    if any(place.at + place.size > len(small) for place in places if place.part is None):
        raise ValueError("a table goes beyond its end")
    if any("array" not in t and "frame" not in t for t in head["tables"]):
        raise ValueError("a table is neither an array nor a frame")
    return SnapshotManifest(name, head, parts, places, head["tables"], memoryview(small))


def number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a position")
    return value


def is_part(name: str) -> bool:
    """Whether it is the name of a part, and in this folder."""
    return name.startswith(f"{PART}-") and name.replace("-", "").isalnum()


def no_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def nbytes_of(table: AnyTable) -> int:
    return table.nbytes if isinstance(table, StoredTable) else size_of(table)


def packed(numbers: Iterable[int], tables: Sequence[AnyTable]) -> list[list[int]]:
    """Tables by number, in groups for a part each."""
    groups: list[list[int]] = []
    size = SHARED_PART
    for n in numbers:
        if size >= SHARED_PART:
            groups.append([])
            size = 0
        groups[-1].append(n)
        size += nbytes_of(tables[n])
    return groups


def content_of_table(table: AnyTable) -> Table:
    found: Table = table.table() if isinstance(table, StoredTable) else table
    return found


def about_of(table: AnyTable) -> About:
    if not isinstance(table, StoredTable):
        return about(table)
    return {"frame": table.rows} if table.width is None else {"array": "<i8", "shape": [table.rows, table.width]}


def checksum(table: Table) -> int:
    return crc32(np.ascontiguousarray(table).tobytes()) if isinstance(table, np.ndarray) else table.height


def file_name(kind: str, batch: int) -> str:
    return f"{kind}-{batch:012d}"


def batch_of(file: str) -> int:
    return int(file.split("-")[1])
