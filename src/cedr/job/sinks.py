"""`[sinks.NAME]`: where an answer goes, and where rows go that could not be used.

[sinks.alerts]
parquet = "out/alerts"                 or duckdb = "out.duckdb", postgres = "host=... dbname=...",
                                       changelog = "out/changes", kafka = { ... }
password = "${file:password}"          for postgres, when it is not in the environment or in ~/.pgpass
table = "alerts"                       in a database; by default the name of the sink
retry = "60s"                          for databases: how long to try again when it cannot be reached
statement = "Alert"                    which statement of the query; by default the last
late = "out/late"                      a folder for rows that could not be used
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cedr.job.section import TABLE, TEXT, Section
from cedr.job.sources import JobSource, flat
from cedr.secret import Discreet, Secret, without_credentials
from cedr.syntax.errors import did_you_mean, listed
from cedr.temporal.duration import duration

Place = Literal["parquet", "duckdb", "postgres", "changelog", "kafka", "memory"]

PLACES = {"parquet": TEXT, "duckdb": TEXT, "postgres": TEXT, "changelog": TEXT, "kafka": TABLE}
DATABASES = ("duckdb", "postgres")
"""Places that contain tables, and may be out of reach for a while."""
FILES = ("duckdb",)
"""Places that are one file; other paths are folders."""
KEYS = {**PLACES, "password": TEXT, "table": TEXT, "retry": TEXT, "statement": TEXT, "late": TEXT}


@dataclass(frozen=True, repr=False)
class JobSink(Discreet):
    """`target` is a path, or the connection string of PostgreSQL. `memory` is for jobs without sinks."""

    name: str
    statement: str
    place: Place = "memory"
    target: str | Secret = ""
    table: str = ""
    password: Secret | None = None
    retry: str = "60s"
    late: str | None = None
    options: Mapping[str, str | Secret] | None = None
    section: Section | None = field(default=None, compare=False)

    @property
    def is_table(self) -> bool:
        return self.place not in ("changelog", "kafka")

    @property
    def path(self) -> str:
        """The path of a sink in a file or folder."""
        assert isinstance(self.target, str)
        return self.target

    def __str__(self) -> str:
        if isinstance(self.target, Secret):
            from cedr.sinks.conninfo import server

            return f"{self.place} {server(self.target)}"
        return f"{self.place} {without_credentials(self.target) or (self.options or {}).get('topic', '')}".strip()


def sink_of(section: Section, statements: Mapping[str, Any]) -> JobSink:
    section.check_keys(KEYS)
    check_name(section)
    place = section.one_of(*PLACES, what="where the answer goes")
    name, last = section.path[-1], list(statements)[-1]
    statement = section.get("statement", last)
    if statement not in statements:
        hint = did_you_mean(statement, statements) or f"; available: {listed(statements, 'and')}"
        raise section.mistake(f"the query has no statement {statement!r}{hint}", "statement")
    if "password" in section and place != "postgres":
        raise section.mistake(f"password applies only to postgres, not to {place}; leave it out", "password")
    if "table" in section and place not in DATABASES:
        raise section.mistake(
            f"table applies only to {listed(DATABASES, 'and')}, not to {place}; leave it out", "table"
        )
    if "retry" in section and place not in DATABASES:
        raise section.mistake(
            f"retry applies only to {listed(DATABASES, 'and')}, not to {place}; leave it out", "retry"
        )
    target = "" if place == "kafka" else section.get(place) if place == "postgres" else section.place(place)
    made = JobSink(
        name,
        statement,
        place,  # type: ignore[arg-type]
        target,
        section.get("table", name),
        section.get("password"),
        checked_retry(section),
        section.place("late") if "late" in section else None,
        kafka_options(section) if place == "kafka" else None,
        section,
    )
    check_target(made, section)
    return made


def checked_retry(section: Section) -> str:
    with section.about(key="retry"):
        text: str = section.get("retry", "60s")
        duration(text, "retry", least=0)
    return text


def check_target(made: JobSink, section: Section) -> None:
    """Check the name of the database and that the required package is installed. Nothing is opened."""
    if made.place in DATABASES:
        from cedr.job.stores import table_sink

        with section.about(key=made.place):
            table_sink(made)


def kafka_options(section: Section) -> dict[str, str | Secret]:
    found = flat(section.sub("kafka"))
    for key, example in (("kafka.bootstrap.servers", '"localhost:9092"'), ("topic", '"alerts"')):
        if key not in found:
            written = f'"{key}"' if "." in key else key
            raise section.mistake(f"{key} is missing; write kafka = {{ {written} = {example}, ... }}", "kafka")
    return found


LOG = "spark.log"
"""Spark's log, in the checkpoint next to the folders of the sinks."""


def check_name(section: Section) -> None:
    """On Spark each sink has a folder in the checkpoint, named after it."""
    name = section.path[-1]
    if name in ("", LOG) or name.startswith(".") or "/" in name or "\0" in name:
        raise section.mistake(f"{name!r} is not a valid folder name in the checkpoint; rename the sink")


def check_places(sources: Mapping[str, JobSource], sinks: Mapping[str, JobSink]) -> None:
    """Two sinks in one place would overwrite each other; so would a sink in the place of a source."""
    taken = {
        (os.path.normpath(source.files.path), ""): f"source {name!r} reads there"
        for name, source in sources.items()
        if source.files is not None
    }
    for name, sink in sinks.items():
        for key, place in places_of(sink):
            if place in taken:
                assert sink.section is not None
                raise sink.section.mistake(f"{taken[place]}; use a different place for each", key)
            taken[place] = f"sink {name!r} writes there"


def places_of(sink: JobSink) -> Iterator[tuple[str, tuple[str, str]]]:
    """Where it writes, by key: a path, in a database also the table."""
    if sink.place == "postgres":
        yield sink.place, (str(sink), sink.table)
    elif sink.target:
        yield sink.place, (os.path.normpath(sink.path), sink.table if sink.place in DATABASES else "")
    if sink.late is not None:
        yield "late", (os.path.normpath(sink.late), "")
