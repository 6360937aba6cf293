"""`[sources.NAME]`: a stream, as `cedr.source` makes it, and where its rows come from.

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

from cedr.api import source
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
    Kind,
    Section,
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

ORIGINS: dict[str, Kind] = {"files": TEXT, "kafka": TABLE, "rate": TABLE, "socket": TABLE}
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
OF_STREAM: dict[str, Kind] = {
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
    "per": NAMES,
    "punctuation": TEXT,
    "promises": SCHEMES,
    "future": LENGTH,
    "late": TEXT,
    "valid": FLAG,
    "ends": FLAG,
}
KEYS = {**ORIGINS, "columns": TABLE, **OF_FILES, **OF_LINES, **OF_STREAM, "time_format": TEXT}

RATE_COLUMNS = ("timestamp", "value")
KAFKA_COLUMNS = ("kafka_key", "kafka_topic", "kafka_partition", "kafka_offset", "kafka_timestamp")
"""What Kafka itself says of a message, for `vs`, `partition` and other columns."""
TIMES = ("timestamp", "number")


@dataclass(frozen=True, repr=False)
class JobSource(Discreet):
    """`options` are those of Spark's own source. `times` says how the times in lines of JSON are written."""

    stream: Stream
    origin: Origin
    files: Files | None
    options: Mapping[str, str | Secret]
    times: str
    section: Section

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
    section.check_keys(KEYS)
    origin = section.one_of(*ORIGINS, what="where its rows come from")
    name = section.path[-1]
    section.need("columns", "the names and types of what its rows say", '{ machine = "str", load = "float" }')
    section.need("vs", "the column of the start times", '"start"')
    section.choice("late", ("collect", "raise"))
    section.choice("unit", get_args(Unit))
    columns = section.sub("columns")
    times = section.pick(*OF_STREAM) | time_format_of(section)
    with section.about(f"source({name!r})", f"source({name!r}, types={section.get('types')!r})", key="columns"):
        stream = source(name, schema_of(columns), **times)
    found = files_of(section) if origin == "files" else None
    for key in OF_FILES if origin != "files" else OF_LINES:
        if key in section and not (key == "format" and is_time_format(section)):
            right = "kafka and socket" if key in OF_LINES else "files"
            raise section.mistake(f"{key} is for sources of {right}, and this one has {origin}; leave it out", key)
    options = {} if origin == "files" else options_of(section, origin)
    made = JobSource(stream, origin, found, options, times_of(section, origin), section)  # type: ignore[arg-type]
    check_names(made)
    return made


def is_time_format(section: Section) -> bool:
    """`format = "csv"` is that of files, `format = "%d.%m.%Y"` that of times."""
    return "%" in section.get("format", "")


def time_format_of(section: Section) -> dict[str, str]:
    """How times are written. Where the format of files has to be named, too, it is `time_format`."""
    if is_time_format(section) and "time_format" in section:
        raise section.mistake("the format of times is given twice; leave one of them out", "time_format")
    found = section.get("format") if is_time_format(section) else section.get("time_format")
    return {} if found is None else {"format": found}


def files_of(section: Section) -> Files:
    form = () if is_time_format(section) else ("format",)
    allowed: dict[str, Any] = {"format": Format, "on_bad": OnBad, "order": Order}
    for key in (*form, "on_bad", "order"):
        section.choice(key, get_args(allowed[key]))
    path = pattern_of(section)
    said = section.pick(*form, "max_files", "separator", "null_values", "on_bad", "order")
    with section.about(f"files({path!r})", key="files"):
        return files(path, columns=section.get("header"), **said)


def pattern_of(section: Section) -> str:
    """A path or a glob; in a glob the folder of the job file stands for itself, whatever it is called."""
    path = section.place("files")
    if os.path.exists(path) or not glob.has_magic(section.get("files")):
        return path
    return placed(Path(glob.escape(str(section.folder))), section.get("files"))


def check_there(made: JobSource) -> None:
    """A misspelt path would wait for ever."""
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
    """Options as Spark wants them: texts. Keys with dots may be written without quotes."""
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
            raise section.mistake(f"{show(value)} is no setting; write a text, a number, or true or false", key)
    return found


def times_of(section: Section, origin: str) -> str:
    if origin == "rate" and "times" in section:
        raise section.mistake("times is for sources of kafka and socket, and this one has rate; leave it out", "times")
    if "times" in section and ("unit" in section or time_format_of(section)):
        raise section.mistake("unit or format says already how times are written; leave times out", "times")
    return section.choice("times", TIMES) or ("number" if "unit" in section else "timestamp")


def check_names(made: JobSource) -> None:
    """The columns that Spark's own sources have."""
    if made.origin != "rate":
        return
    for name in needed_columns(made.source, RATE_COLUMNS):
        if name not in RATE_COLUMNS:
            key = next((k for k in ("vs", "ve", "ve_new", "cti") if made.section.get(k) == name), "columns")
            problem = f"a source of rate has the columns {' and '.join(RATE_COLUMNS)}, not {name!r}"
            raise made.section.mistake(problem, *([key, name] if key == "columns" else [key]))


def line_columns(made: JobSource) -> list[str]:
    """The columns of a source of lines that stand in the lines themselves."""
    return [name for name in needed_columns(made.source) if name not in KAFKA_COLUMNS or made.origin != "kafka"]
