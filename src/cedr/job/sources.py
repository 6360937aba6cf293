"""`[sources.NAME]`: a stream, as `cedr.source` defines it, and where its rows come from.

[sources.readings]
files = "data/*.csv"                              or kafka = {...}, rate = {...}, socket = {...}
columns = { machine = "str", load = "float" }     the payload
vs = "start"                                      and the other settings of `cedr.source`
delay = "5s"
"""

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from cedr.api import source_of_keys
from cedr.job.section import (
    COLUMN_OR_FLAG,
    FLAG,
    LENGTH,
    NAMES,
    SCHEMES,
    TABLE,
    TEXT,
    TEXTS,
    WHOLE,
    Section,
    ValueKind,
    placed,
    show,
)
from cedr.job.types import schema_of
from cedr.plan.nodes.source import Source, Unit
from cedr.secret import Discreet, Secret, without_credentials
from cedr.sources.event_time import needed_columns
from cedr.sources.files.listing import check_place
from cedr.sources.files.settings import Files, Format, OnBad, Order, files
from cedr.stream import Stream

Origin = Literal["files", "kafka", "rate", "socket"]

ORIGINS: dict[str, ValueKind] = {"files": TEXT, "kafka": TABLE, "rate": TABLE, "socket": TABLE}
OF_FILES = {
    "format": TEXT,
    "max_files": WHOLE,
    "header": TEXTS,
    "separator": TEXT,
    "null_values": TEXTS,
    "on_bad": TEXT,
    "order": TEXT,
}
OF_LINES = {"times": TEXT}
OF_STREAM: dict[str, ValueKind] = {
    "vs": TEXT,
    "ve": TEXT,
    "duration": LENGTH,
    "ve_new": TEXT,
    "cti": TEXT,
    "unit": TEXT,
    "types": TEXT,
    "kind": TEXT,
    "delay": LENGTH,
    "ordered": FLAG,
    "insert_only": FLAG,
    "external_ctis": COLUMN_OR_FLAG,
    "partition": TEXT,
    "idle": LENGTH,
    "progress_by": NAMES,
    "punctuation": TEXT,
    "promises": SCHEMES,
    "max_ahead": LENGTH,
    "late": TEXT,
    "valid": FLAG,
    "ends": FLAG,
}
FORMER = {"per": "progress_by", "future": "max_ahead"}
"""Keys by their former names, which work for one more version."""
KEYS = {**ORIGINS, "columns": TABLE, **OF_FILES, **OF_LINES, **OF_STREAM, "time_format": TEXT}

RATE_COLUMNS = ("timestamp", "value")
KAFKA_COLUMNS = ("kafka_key", "kafka_topic", "kafka_partition", "kafka_offset", "kafka_timestamp")
"""Kafka's metadata of a message, for `vs`, `partition` and other columns."""
TIMES = ("timestamp", "number")


@dataclass(frozen=True, repr=False)
class JobSource(Discreet):
    """`options` are those of Spark's own source. `times` is how the times in lines of JSON are written."""

    stream: Stream
    origin: Origin
    files: Files | None
    options: Mapping[str, str | Secret]
    times: str
    section: Section
    notes: tuple[str, ...] = ()
    """What `check` remarks about its keys."""

    @property
    def source(self) -> Source:
        assert isinstance(self.stream.plan, Source)
        return self.stream.plan

    @property
    def name(self) -> str:
        return self.source.name

    def __str__(self) -> str:
        if self.files is not None:
            return f"files {without_credentials(self.files.path)}"
        about = {"kafka": "subscribe", "socket": "port", "rate": "rowsPerSecond"}[self.origin]
        return f"{self.origin} {self.options.get(about, '')}".rstrip()


def source_of(section: Section) -> JobSource:
    notes = former_keys(section)
    section = with_new_keys(section)
    section.check_keys(KEYS)
    origin = section.one_of(*ORIGINS, what="where its rows come from")
    name = section.path[-1]
    section.need("columns", "the names and types of its payload columns", '{ machine = "str", load = "float" }')
    section.need("vs", "the column of the start times", '"start"')
    section.choice("late", ("collect", "raise"))
    section.choice("unit", get_args(Unit))
    columns = section.sub("columns")
    times = section.pick(*OF_STREAM) | time_format_of(section)
    with section.about(f"source({name!r})", f"source({name!r}, types={section.get('types')!r})", key="columns"):
        stream = source_of_keys(name, schema_of(columns), **times)
    found = files_of(section) if origin == "files" else None
    for key in OF_FILES if origin != "files" else OF_LINES:
        if key in section and not (key == "format" and is_time_format(section)):
            origins = "kafka and socket" if key in OF_LINES else "files"
            raise section.mistake(f"{key} applies only to {origins} sources, not to {origin}; leave it out", key)
    options = {} if origin == "files" else options_of(section, origin)
    made = JobSource(stream, origin, found, options, times_of(section, origin), section, notes)  # type: ignore[arg-type]
    check_names(made)
    return made


def with_new_keys(section: Section) -> Section:
    """The section with the current names of its keys; `former_keys` are the notes about others."""
    for old, new in FORMER.items():
        if old in section and new in section:
            raise section.mistake(f"{old} is the former name of {new}; leave it out", old)
    values = {FORMER.get(key, key): value for key, value in section.values.items()}
    moved = {(*section.path, old): (*section.path, new) for old, new in FORMER.items() if old in section}
    places = {moved.get(path, path): place for path, place in section.places.items()}
    return Section(section.file, section.folder, section.path, values, places)


def former_keys(section: Section) -> tuple[str, ...]:
    """A note for each key of a source that has been renamed."""
    return tuple(
        f"{'.'.join(section.path)}.{old} is now called {new}; the old name will stop working"
        for old, new in FORMER.items()
        if old in section
    )


def is_time_format(section: Section) -> bool:
    """`format = "csv"` is a file format, `format = "%d.%m.%Y"` a time format."""
    return "%" in section.get("format", "")


def time_format_of(section: Section) -> dict[str, str]:
    """How times are written. Where a file format is given as well, the key is `time_format`."""
    if is_time_format(section) and "time_format" in section:
        raise section.mistake("the time format is given twice; leave one of them out", "time_format")
    found = section.get("format") if is_time_format(section) else section.get("time_format")
    return {} if found is None else {"format": found}


def files_of(section: Section) -> Files:
    form = () if is_time_format(section) else ("format",)
    allowed: dict[str, Any] = {"format": Format, "on_bad": OnBad, "order": Order}
    for key in (*form, "on_bad", "order"):
        section.choice(key, get_args(allowed[key]))
    path = pattern_of(section)
    given = section.pick(*form, "max_files", "separator", "null_values", "on_bad", "order")
    with section.about(f"files({path!r})", key="files"):
        return files(path, columns=section.get("header"), **given)


def pattern_of(section: Section) -> str:
    """A path or a glob; in a glob the folder of the job file is escaped."""
    path = section.place("files")
    if os.path.exists(path) or not glob.has_magic(section.get("files")):
        return path
    return placed(Path(glob.escape(str(section.folder))), section.get("files"))


def check_there(made: JobSource) -> None:
    """With a misspelt path the job would wait forever."""
    if made.files is not None:
        with made.section.about(f"files({made.files.path!r})", key="files"):
            check_place(made.files)


# --- Spark's own sources -------------------------------------------------------------------------------------------

NEEDED = {
    "kafka": {"kafka.bootstrap.servers": '"localhost:9092"', "subscribe": '"readings"'},
    "socket": {"host": '"localhost"', "port": "9999"},
    "rate": {},
}
INSTEAD_OF = {"subscribe": ("subscribePattern", "assign")}


def options_of(section: Section, origin: str) -> dict[str, str | Secret]:
    """Options for Spark, as strings. Keys with dots may be written without quotes."""
    found = flat(section.sub(origin))
    for key, example in NEEDED[origin].items():
        if not any(k in found for k in (key, *INSTEAD_OF.get(key, ()))):
            written = f'"{key}"' if "." in key else key
            raise section.mistake(f"{key} is missing; write {origin} = {{ {written} = {example}, ... }}", origin)
    return found


def flat(section: Section, before: str = "") -> dict[str, str | Secret]:
    found: dict[str, str | Secret] = {}
    for key, value in section.values.items():
        if isinstance(value, dict):
            found |= flat(section.sub(key), f"{before}{key}.")
        elif isinstance(value, str | Secret):
            found[f"{before}{key}"] = value
        elif isinstance(value, bool | int | float):
            found[f"{before}{key}"] = str(value).lower() if isinstance(value, bool) else str(value)
        else:
            raise section.mistake(f"{show(value)} is not a valid setting; write a string, a number, true or false", key)
    return found


def times_of(section: Section, origin: str) -> str:
    if origin == "rate" and "times" in section:
        raise section.mistake("times applies only to kafka and socket sources, not to rate; leave it out", "times")
    if "times" in section and ("unit" in section or time_format_of(section)):
        raise section.mistake("unit or format already defines how times are written; leave times out", "times")
    return section.choice("times", TIMES) or ("number" if "unit" in section else "timestamp")


def check_names(made: JobSource) -> None:
    """Check the columns against those of Spark's rate source."""
    if made.origin != "rate":
        return
    for name in needed_columns(made.source, RATE_COLUMNS):
        if name not in RATE_COLUMNS:
            key = next((k for k in ("vs", "ve", "ve_new", "cti") if made.section.get(k) == name), "columns")
            problem = f"a rate source has the columns {' and '.join(RATE_COLUMNS)}, not {name!r}"
            raise made.section.mistake(problem, *([key, name] if key == "columns" else [key]))


def line_columns(made: JobSource) -> list[str]:
    """The columns of a source of lines that are in the lines themselves."""
    return [name for name in needed_columns(made.source) if name not in KAFKA_COLUMNS or made.origin != "kafka"]
