"""A folder of Parquet files with the table, and a subfolder `_cedr` with their manifest.

Each shard writes its own files. Tuples that can no longer change go to files that stay, the rest to a file that the
next batch replaces: a batch costs the batch and what is open, not the table. New files wait in `_cedr/staged` until the
driver commits: it moves them into the folder, writes the manifest, which is the commit, and removes what the manifest
no longer names. So any reader of `folder/*.parquet` sees the table while no commit is in progress; `read_parquet` uses
the manifest and is right at any time.

    folder/schema.parquet                        no rows; makes the folder readable before the first batch
    folder/{settled,open}-<shard>-<batch>-<token>.parquet
    folder/_cedr/<batch>.json                    the manifest
    folder/_cedr/staged/<name>.staged

A remote store has no rename. There new files are written where they stay, so other readers see the table while no
micro-batch is being processed, and the manifest, which is created and never replaced, decides which driver commits.

No name is reused, so two attempts at one batch never touch each other's files. Each file has a checksum that cedr
verifies when it reads it back. A commit is done when it survives a power cut: new files are synced before the manifest
names them, and the manifest before what it replaces is removed.
"""

import base64
import io
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import polars as pl

from cedr.columnar.chunk import VS, Chunk
from cedr.columnar.tally import COUNT, VE, changed, repeated
from cedr.secret import without_credentials
from cedr.sinks.base import SinkError, SinkTable, TableSink, all_there, as_ipc
from cedr.sinks.manifest import FOLDER, Manifest, ShardFiles, TableFile
from cedr.storage.folder import Folder
from cedr.temporal.errors import DamagedFileError
from cedr.temporal.time import INF

SCHEMA = "schema.parquet"
OURS = re.compile(r"(?:open|settled)-\d+-(\d+)-[0-9a-f]+\.parquet")
MANY_FILES = 32
"""Number of files of settled tuples of one size that are merged into one of the next size."""
BIG = 1_000_000
"""Files with at least this many rows are not merged."""


class ParquetSink(TableSink):
    def __init__(self, path: str | os.PathLike[str]) -> None:
        """`path` is a folder, or a URI such as `s3://bucket/folder`."""
        place = os.fspath(path)
        self.folder = Folder(place if "://" in place else os.path.abspath(os.path.expanduser(place)))
        self._held: dict[int, tuple[ShardFiles, pl.DataFrame]] = {}

    def __str__(self) -> str:
        return f"Parquet folder {without_credentials(self.folder.place)}"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": {}}

    # --- on the driver -----------------------------------------------------------------------------------------------

    def check_place(self, table: SinkTable | None = None) -> None:
        with self._usable():
            manifest = Manifest.newest(self.folder)
            if manifest is None:
                self._check_empty()
            elif table is not None:
                self._check_same(table, manifest)

    def open(self, table: SinkTable) -> None:
        self.check(table)
        with self._usable():
            self._open(table)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except OSError as e:
            raise SinkError(f"{self} cannot be used: {os.strerror(e.errno) if e.errno else e}") from None

    def _open(self, table: SinkTable) -> None:
        if (manifest := Manifest.newest(self.folder)) is None:
            self._check_empty()
            for folder in (self.folder, self.folder.sub(FOLDER), self._staged):
                folder.make()
            self.folder.write_parquet(SCHEMA, as_parquet(table, pl.DataFrame(schema=table.inner_schema)))
            manifest = Manifest(table)
            manifest.write(self.folder)
        else:
            self._check_same(table, manifest)
            if manifest.batch is None and table.later:
                manifest = Manifest(table)
                manifest.write(self.folder)
        self.table = table.begun_as(manifest.table)
        self.folder.sweep()
        self._sweep(manifest, staged_too=True)

    def _check_same(self, table: SinkTable, manifest: Manifest) -> None:
        table.check_same(manifest.table, str(self))
        if table.shards != (shards := manifest.table.shards):
            raise SinkError(f"{self} was written by {shards} shards, this run has {table.shards}; use shards={shards}")

    def last_batch(self) -> int | None:
        return self._manifest().batch

    def commit(self, batch: int, prepared: list[bytes]) -> None:
        manifest = self._manifest()
        if self._is_new(batch, manifest.batch):
            parts = {part.shard: part for part in map(ShardFiles.from_bytes, prepared)}
            parts |= self._without_removed(batch, manifest, list(parts.values()))
            parts = {shard: replace(part, elsewhere="") for shard, part in parts.items()}
            after = Manifest(self.table, batch, {**manifest.parts, **parts})
            if self.folder.local:
                self._publish(after.names - manifest.names)
            # Files of a batch that others have committed are removed with the next one.
            if after.write(self.folder) and (self.folder.local or self.last_batch() == batch):
                self._sweep(after)

    def _publish(self, names: set[str]) -> None:
        """Move files to where readers look."""
        for name in sorted(names):
            self._staged.move(self._waiting(name), self.folder, name)
        if names:
            self.folder.sync()

    def _without_removed(self, batch: int, manifest: Manifest, parts: list[ShardFiles]) -> dict[int, ShardFiles]:
        """The parts of shards that were split, without the tuples that others have removed or changed."""
        removed = [from_ipc(part.elsewhere) for part in parts if part.elsewhere]
        if not removed:
            return {}
        cti = min(part.cti for part in parts)
        after, rest = {}, negated(pl.concat(removed))
        for shard in sorted(manifest.parts.keys() - {part.shard for part in parts}):
            part = manifest.parts[shard]
            if not rest.height or part.open is None:
                continue
            there, rest = taken_out(self._read(part.open), rest, self.table.columns)
            settled, still_open = there.filter(settled_by(cti)), there.filter(~settled_by(cti))
            files = [self._write("settled", shard, batch, settled)] if settled.height else []
            opened = self._write("open", shard, batch, still_open) if still_open.height else None
            after[shard] = replace(part, open=opened, settled=(*part.settled, *files))
        if not self.table.later:
            all_there(negated(rest), str(self))
        return after

    def read(self) -> pl.DataFrame:
        return read_parquet(self.folder.place)

    def _manifest(self) -> Manifest:
        if (manifest := Manifest.newest(self.folder)) is None:
            raise self._no_manifest()
        return manifest

    def _no_manifest(self) -> DamagedFileError:
        return self.folder.damaged(FOLDER, "the manifest in it is missing, which lists the files of the table")

    def _check_empty(self) -> None:
        foreign = [name for name in self.folder.names() if name.endswith(".parquet") and name != SCHEMA]
        if foreign and all(map(OURS.fullmatch, foreign)):
            raise self._no_manifest()
        if foreign:
            raise SinkError(
                f"{self} contains files that cedr has not written, such as {foreign[0]}; use an empty folder"
            )

    def check(self, table: SinkTable) -> None:
        try:
            as_parquet(table, pl.DataFrame(schema=table.inner_schema))
        except pl.exceptions.PolarsError as e:
            raise SinkError(f"{self} cannot store the answer: {e}; cast the column in the query") from e

    def _sweep(self, manifest: Manifest, staged_too: bool = False) -> None:
        """Remove what the manifest does not name: older manifests, replaced files, files of attempts that failed."""
        bookkeeping = self.folder.sub(FOLDER)
        names = Manifest.names_in(self.folder)
        bookkeeping.remove(names[: names.index(manifest.file_name)] if manifest.file_name in names else [])
        ours = [name for name in self.folder.names() if OURS.fullmatch(name)]
        if not self.folder.local:  # those of the next batch wait here, and a driver that is replaced may be late
            ours = [name for name in ours if batch_of(name) <= (-1 if manifest.batch is None else manifest.batch)]
        self.folder.remove([name for name in ours if name not in manifest.names])
        if not self.folder.local:
            return
        done = [name for name in self._staged.names() if staged_too or batch_of(name) <= (manifest.batch or 0)]
        self._staged.remove(done)

    # --- in a shard's process ----------------------------------------------------------------------------------------

    def prepare(self, shard: int, batch: int, changes: Chunk) -> bytes:
        try:
            return self._prepared(shard, batch, changes)
        except DamagedFileError:
            if self.folder.local or (self.last_batch() or 0) < batch:
                raise
            return b""  # a driver that we replace committed it at the last moment, and removed what we were reading

    def _prepared(self, shard: int, batch: int, changes: Chunk) -> bytes:
        manifest = self._manifest()
        if not self._is_new(batch, manifest.batch):
            return b""  # already committed; commit will ignore it
        before = manifest.parts.get(shard, ShardFiles(shard))
        cti = max(before.cti, changes.cti)
        after = self._open_tuples(before)
        elsewhere = ""
        if len(changes):
            after = changed(after, changes.rows, self.table.columns)
            if self.split_shards & manifest.parts.keys():
                missing, after = after.filter(pl.col(COUNT) < 0), after.filter(pl.col(COUNT) > 0)
                elsewhere = base64.b64encode(as_ipc(missing)).decode() if missing.height else ""
            after = after.filter(pl.col(COUNT) > 0) if self.table.later else all_there(after, str(self))
        is_settled = settled_by(cti)
        settled, still_open = after.filter(is_settled), after.filter(~is_settled)
        part = replace(before, cti=cti, elsewhere=elsewhere)
        if len(changes) or settled.height:
            files = self._folded(before.settled, shard, batch)
            if settled.height:
                files = (*files, self._write("settled", shard, batch, settled))
            opened = self._write("open", shard, batch, still_open) if still_open.height else None
            part = replace(part, open=opened, settled=files)
        self._held[shard] = replace(part, elsewhere=""), still_open
        return part.to_bytes()

    def _open_tuples(self, part: ShardFiles) -> pl.DataFrame:
        """From the cache if this process prepared the last commit, else read back."""
        remembered = self._held.get(part.shard)
        if remembered and remembered[0] == part:
            return remembered[1]
        return self._read(part.open) if part.open else pl.DataFrame(schema=self.table.inner_schema)

    def _folded(self, settled: tuple[TableFile, ...], shard: int, batch: int) -> tuple[TableFile, ...]:
        """Merges many small files into one. A tuple is rewritten only a few times, however many batches there are."""
        for level in sorted({file.level for file in settled}):
            small = [file for file in settled if file.level == level and file.rows < BIG]
            if len(small) >= MANY_FILES:
                together = pl.concat([self._read(file) for file in small])
                rest = tuple(file for file in settled if file not in small)
                return (*rest, self._write("settled", shard, batch, together, level + 1))
        return settled

    def _write(self, kind: str, shard: int, batch: int, counted: pl.DataFrame, level: int = 0) -> TableFile:
        name = f"{kind}-{shard:04}-{batch:08}-{uuid4().hex[:12]}.parquet"
        content = as_parquet(self.table, counted, to_stay=level > 0)
        self._staged.write_parquet(self._waiting(name), content, label=name, sync="file")
        return TableFile(name, int(counted[COUNT].sum()), level)

    def _read(self, file: TableFile) -> pl.DataFrame:
        try:
            return counted_tuples(self.table, self.folder.read_parquet(file.name))
        except FileNotFoundError:
            raise self._missing(file.name) from None

    def _missing(self, name: str) -> DamagedFileError:
        return self.folder.damaged(name, "it is missing, but it is a part of the table")

    @property
    def _staged(self) -> Folder:
        return self.folder.sub(FOLDER).sub("staged") if self.folder.local else self.folder

    def _waiting(self, name: str) -> str:
        """The name of a file until the commit. Stores do not rename, so there it is its name already."""
        return f"{name}.staged" if self.folder.local else name


def read_parquet(path: str | os.PathLike[str]) -> pl.DataFrame:
    """The table in a folder that a query writes, as of its newest commit."""
    sink = ParquetSink(path)
    while True:
        if (manifest := Manifest.newest(sink.folder)) is None:
            raise SinkError(f"{sink} does not exist yet; a query creates it when it starts")
        try:
            files = [sink.folder.read_parquet(name) for name in sorted(manifest.names)]
        except FileNotFoundError as e:
            newest = Manifest.newest(sink.folder)
            if newest is None or newest.batch == manifest.batch:
                raise sink._missing(os.path.basename(e.filename or str(e))) from None
            continue  # there was a commit since we read the manifest
        none = pl.DataFrame(schema=manifest.table.inner_schema)
        tuples = pl.concat([none, *(counted_tuples(manifest.table, file) for file in files)])
        return manifest.table.ordered(repeated(tuples))


def as_parquet(table: SinkTable, counted: pl.DataFrame, to_stay: bool = False) -> bytes:
    """Every copy is a separate row. Open tuples are written quickly. Files that stay are sorted by start, for searches
    by time, and compressed with zstd, which takes twice the time of snappy and a quarter less space."""
    rows = repeated(counted)
    file = io.BytesIO()
    table.shown(rows.sort(VS) if to_stay else rows).write_parquet(file, compression="zstd" if to_stay else "snappy")
    return file.getvalue()


def counted_tuples(table: SinkTable, shown: pl.DataFrame) -> pl.DataFrame:
    """The inverse of `as_parquet`; copies are not summed up."""
    rows = table.inner(shown)
    return rows.with_columns(pl.lit(1, pl.Int64).alias(COUNT)).select(*table.inner_schema)


def settled_by(cti: int) -> pl.Expr:
    """Whether tuples can no longer change."""
    return pl.lit(True) if cti == INF else pl.col(VE) < cti


def from_ipc(text: str) -> pl.DataFrame:
    return pl.read_ipc_stream(io.BytesIO(base64.b64decode(text)))


def negated(counted: pl.DataFrame) -> pl.DataFrame:
    return counted.with_columns(-pl.col(COUNT))


def taken_out(tuples: pl.DataFrame, removed: pl.DataFrame, columns: Iterable[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Counted tuples without others, as far as they are there; and those that are not there."""
    names = [VS, VE, *columns]
    counts = pl.concat([tuples, negated(removed).select(tuples.columns)])
    left = counts.group_by(names).agg(pl.col(COUNT).sum())
    missing = left.filter(pl.col(COUNT) < 0)
    return left.filter(pl.col(COUNT) > 0).select(tuples.columns), negated(missing).select(tuples.columns)


def batch_of(staged_name: str) -> int:
    found = OURS.match(staged_name)
    return int(found[1]) if found else 0
