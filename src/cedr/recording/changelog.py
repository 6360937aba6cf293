"""Reading and writing changelogs.

Files of a folder that Spark wrote are those its own log names, in the order of its micro-batches; in other folders they
are taken in the order of their names. Rows of one shard are in order, and no two shards contain the same tuples.
"""

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import polars as pl
from polars.exceptions import PolarsError
from pyarrow import ArrowException
from pyarrow.parquet import ParquetFile

from cedr.columnar.chunk import NEW, OLD, VS, Chunk
from cedr.columnar.times import Times
from cedr.plan.schema import Schema, first_line
from cedr.sinks.manifest import FOLDER
from cedr.sinks.parquet_table import read_parquet
from cedr.sinks.readable import changes, renamed
from cedr.sources.user_times import TimeType, time_type
from cedr.sources.user_times import chronons as as_chronons
from cedr.storage.folder import Folder
from cedr.storage.seal import DamageError, check_if_sealed
from cedr.temporal.errors import DamagedFileError, QueryError
from cedr.temporal.time import INF, MIN

OWN = ("change", "vs", "ve", "ve_new")
EMITTED = "emitted"
"""The column with the time of day when a row was emitted."""
FORMER = "told"
"""Its former name, which is read as well: one folder may contain files with either."""
MAYBE = ("shard", EMITTED)
KINDS = ("insert", "adjust", "remove", "cti")
SPARKS_LOG = "_spark_metadata"
FILE = "changes-{:05}.parquet"
REMEDY = "Restore it from a backup, or record the changelog again"


@dataclass(frozen=True)
class Recorded:
    """A changelog as chunks have it.

    rows        inserts and adjusts in order
    ctis        the progress of all shards: pairs of (number of rows before it, CTI)
    emitted_at  the time of day of each row, in microseconds since 1970, if it was recorded
    time_type   how the user's times look
    """

    place: str
    rows: pl.DataFrame
    ctis: tuple[tuple[int, int], ...]
    emitted_at: Times | None
    time_type: TimeType

    @property
    def schema(self) -> Schema:
        return Chunk(self.rows).schema

    def first(self, n: int) -> pl.DataFrame:
        return self.rows[:n]


def read_changelog(path: str | os.PathLike[str]) -> Recorded:
    """A changelog, or a table with `vs` and `ve`, such as a Parquet sink keeps: its rows are inserts."""
    place = os.fspath(path)
    if (Path(path) / FOLDER).is_dir():
        return recorded(as_inserts(read_parquet(path)), place, maybe=())
    files = changelog_files(Path(path))
    frames = [with_current_names(frame) for file in files if (frame := read_file(file)).height or len(files) == 1]
    if not frames:
        raise QueryError(f"{place}: its {len(files)} files contain no rows")
    try:
        frame = pl.concat(frames, how="vertical_relaxed")
    except PolarsError as e:
        raise QueryError(f"{place}: its files do not have the same columns: {first_line(e)}") from None
    return recorded(frame, place)


def changelog_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise QueryError(f"{path} does not exist; name a Parquet or CSV file, or a folder of such files")
    if (path / SPARKS_LOG).is_dir():
        return [path / name for name in names_in_sparks_log(path / SPARKS_LOG)]
    found = sorted(p for p in path.iterdir() if p.suffix.lower() in READERS and not p.name.startswith((".", "_")))
    if not found:
        raise QueryError(f"{path}: this folder contains no .parquet or .csv files")
    return found


def names_in_sparks_log(log: Path) -> list[str]:
    """A log file `n` names the files of micro-batch n; `n.compact` those of all up to n."""
    numbers = {int(p.name.split(".")[0]): p for p in log.iterdir() if p.name.removesuffix(".compact").isdecimal()}
    whole = max((n for n, p in numbers.items() if p.suffix == ".compact"), default=-1)
    names = []
    for number in sorted(n for n in numbers if n >= whole):
        try:
            entries = [json.loads(line) for line in numbers[number].read_text("utf-8").splitlines()[1:]]
            added = [entry["path"] for entry in entries if entry.get("action", "add") == "add"]
        except (OSError, ValueError, KeyError, AttributeError) as e:
            raise QueryError(f"{numbers[number]}: the log of Spark's file sink cannot be read: {e}") from None
        names += [os.path.basename(unquote(urlparse(path).path)) for path in added]
    return names


def read_csv(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, try_parse_dates=True, infer_schema_length=None)


def read_checked(path: Path) -> pl.DataFrame:
    """Of a file with a seal of ours, that is checked; of others the checksums of their pages, if they have some."""
    content = path.read_bytes()
    try:
        if not check_if_sealed(content):
            with ParquetFile(io.BytesIO(content), page_checksum_verification=True) as file:
                for _ in file.iter_batches():
                    pass
    except DamageError as e:
        raise DamagedFileError(str(path), str(e), REMEDY) from None
    except (ArrowException, OSError) as e:
        raise DamagedFileError(str(path), f"it cannot be read as Parquet ({first_line(e)})", REMEDY) from None
    return pl.read_parquet(io.BytesIO(content))


Reader = Callable[[Path], pl.DataFrame]
READERS: dict[str, Reader] = {".parquet": read_checked, ".pq": read_checked, ".csv": read_csv}


def read_file(path: Path) -> pl.DataFrame:
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise QueryError(f"{path} cannot be read; the names of changelogs end in {', '.join(READERS)}")
    try:
        return reader(path)
    except (OSError, PolarsError) as e:
        raise QueryError(f"{path} cannot be read: {first_line(e)}") from None


def check_times(one: Recorded, two: Recorded) -> None:
    """Numbers and timestamps are not on one axis."""
    if isinstance(one.time_type, pl.Datetime) != isinstance(two.time_type, pl.Datetime):
        raise QueryError(f"{one.place} and {two.place} use different time types: {one.time_type} and {two.time_type}")


# --- columns -------------------------------------------------------------------------------------------------------


def as_inserts(table: pl.DataFrame) -> pl.DataFrame:
    """The rows of a table as the inserts of a changelog."""
    own = {name: f"_{name}" if name in table.columns else name for name in ("change", "ve_new")}
    start = table["_vs" if "_vs" in table.columns else "vs"]
    return table.with_columns(pl.lit("insert").alias(own["change"]), pl.lit(None, start.dtype).alias(own["ve_new"]))


def with_current_names(frame: pl.DataFrame) -> pl.DataFrame:
    """Rename `told` to `emitted`. The time of emission is the last column; a payload may have the other name."""
    found = [name for name in frame.columns if name.removeprefix("_") in (EMITTED, FORMER)]
    if not found or found[-1].removeprefix("_") == EMITTED:
        return frame
    return frame.rename({found[-1]: f"_{EMITTED}" if EMITTED in frame.columns else EMITTED})


def recorded(frame: pl.DataFrame, place: str, maybe: tuple[str, ...] = MAYBE) -> Recorded:
    """A table with the columns of a changelog, or with `vs` and `ve` alone."""
    if not {"change", "_change", "ve_new", "_ve_new"} & set(frame.columns) and {"vs", "ve"} <= set(frame.columns):
        frame, maybe = as_inserts(frame), ()
    names = {name: f"_{name}" if f"_{name}" in frame.columns else name for name in (*OWN, *maybe)}
    if missing := [name for name in OWN if names[name] not in frame.columns]:
        have = ", ".join(frame.columns)
        raise QueryError(
            f"{place} is neither a changelog nor a table with vs and ve: it has no column {missing[0]!r} "
            f"(columns: {have})"
        )
    change = frame[names["change"]]
    if (wrong := change.filter(~change.is_in(KINDS) | change.is_null())).len():
        raise QueryError(f"{place}: invalid change {wrong[0]!r}; it must be one of {', '.join(KINDS)}")
    kind = time_type(frame[names["vs"]].dtype)
    times = {name: chronons(frame[names[name]], place) for name in OWN[1:]}
    payload = frame.drop([name for name in names.values() if name in frame.columns])
    vs, ve = times["vs"].fill_null(MIN), times["ve"].fill_null(INF)
    is_insert, removes = change == "insert", change == "remove"
    old = vs.zip_with(is_insert, ve)
    new = ve.zip_with(is_insert, vs.zip_with(removes, times["ve_new"].fill_null(INF)))
    rows = pl.DataFrame({VS: vs, OLD: old, NEW: new}).hstack(payload.get_columns())
    is_cti = (change == "cti").to_numpy()
    shards = frame[names["shard"]] if names.get("shard") in frame.columns else pl.zeros(frame.height, eager=True)
    ctis = times["vs"].fill_null(INF).to_numpy()
    emitted_at = None
    data = rows.filter(pl.Series(~is_cti))
    check_lifetimes(data, place)
    if names.get(EMITTED) in frame.columns:
        given = chronons(frame[names[EMITTED]], place).filter(pl.Series(~is_cti))
        if given.null_count():
            number = given.is_null().arg_true()[0] + 1
            raise QueryError(f"{place}: change {number} has no time in the column {names[EMITTED]!r}; give it one")
        emitted_at = given.to_numpy()
    return Recorded(place, data, tuple(common_ctis(is_cti, ctis, shards.to_list())), emitted_at, kind)


def check_lifetimes(rows: pl.DataFrame, place: str) -> None:
    """An end before its start would be lost, as if the tuple had never been inserted."""
    wrong = (rows[NEW] < rows[VS]) | (rows[OLD] < rows[VS]) | ((rows[OLD] == rows[VS]) & (rows[NEW] == rows[VS]))
    if wrong.any():
        number = wrong.arg_true()[0]
        vs, old, new = rows.select(VS, OLD, NEW).row(number)
        raise QueryError(
            f"{place}: change {number + 1} has the start {vs} and the end {new if old == vs else min(old, new)}; "
            "an end must come after the start"
        )


def chronons(times: pl.Series, place: str) -> pl.Series:
    if times.dtype == pl.String and times.is_null().all():
        return times.cast(pl.Int64)
    return as_chronons(times, place)


def common_ctis(is_cti: Any, ctis: Times, shards: list[Any]) -> Iterator[tuple[int, int]]:
    """The common progress of all shards: the least of their last CTIs."""
    come = dict.fromkeys(shards, MIN)
    last = MIN
    for at in np.flatnonzero(is_cti):
        come[shards[at]] = max(come[shards[at]], int(ctis[at]))
        if (cti := min(come.values())) > last:
            last = cti
            yield int(at - is_cti[:at].sum()), cti


# --- writing -------------------------------------------------------------------------------------------------------


def check_form(schema: Mapping[str, pl.DataType], form: str) -> None:
    """CSV holds neither lists nor bytes, JSON no bytes."""
    for name, kind in schema.items():
        if form in ("csv", "json") and (kind == pl.Binary or (form == "csv" and kind.is_nested())):
            raise QueryError(
                f"--as {form}: the column {name!r} is of type {kind}, which {form} does not support; use parquet"
            )


def changelog_rows(chunk: Chunk, emitted_at: int, kind: TimeType) -> pl.DataFrame:
    """A chunk of an answer as rows of a changelog, emitted at this time of day."""
    frame = changes(chunk.rows, chunk.cti, kind, chunk.schema)
    own = renamed(pl.DataFrame({EMITTED: []}), {EMITTED: EMITTED}, chunk.schema).columns[0]
    return frame.with_columns(pl.lit(emitted_at).cast(pl.Datetime("us", "UTC")).alias(own))


def check_not_of_spark(folder: str | os.PathLike[str]) -> None:
    if (Path(folder) / SPARKS_LOG).exists():
        raise QueryError(f"{folder} contains a changelog written by a query on Spark; use another folder")


def write_changelog(folder: str | os.PathLike[str], frames: Iterable[pl.DataFrame]) -> None:
    """Replace what an earlier local run wrote. What Spark wrote is not touched."""
    place = Path(folder)
    check_not_of_spark(place)
    try:
        place.mkdir(parents=True, exist_ok=True)
        for old in place.glob(FILE.replace("{:05}", "*")):
            old.unlink()
        for number, frame in enumerate(f for f in frames if f.height):
            buffer = io.BytesIO()
            frame.write_parquet(buffer)
            Folder(str(place)).write_parquet(FILE.format(number), buffer.getvalue())
    except OSError as e:
        raise QueryError(f"{place} cannot be written: {e.strerror}") from None
