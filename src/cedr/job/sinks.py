"""`[sinks.NAME]`: where an answer goes, and rows that could not be used.

[sinks.alerts]
parquet = "out/alerts"                 or duckdb = "out.duckdb", postgres = "host=... dbname=...",
                                       changelog = "out/changes", kafka = { ... }
table = "alerts"                       in a database; by default the name of the sink
statement = "Alert"                    which statement of the query; by default the last
late = "out/late"                      a folder for rows that could not be used
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cedr.job.section import TABLE, TEXT, Section
from cedr.job.sources import flat
from cedr.language.errors import did_you_mean, listed

Place = Literal["parquet", "duckdb", "postgres", "changelog", "kafka", "memory"]

PLACES = {"parquet": TEXT, "duckdb": TEXT, "postgres": TEXT, "changelog": TEXT, "kafka": TABLE}
KEYS = {**PLACES, "table": TEXT, "statement": TEXT, "late": TEXT}


@dataclass(frozen=True)
class JobSink:
    """`target` is a path, or for PostgreSQL how to connect. `memory` is for jobs without sinks."""

    name: str
    statement: str
    place: Place = "memory"
    target: str = ""
    table: str = ""
    late: str | None = None
    options: Mapping[str, str] | None = None
    section: Section | None = field(default=None, compare=False)

    @property
    def is_table(self) -> bool:
        return self.place not in ("changelog", "kafka")

    def __str__(self) -> str:
        return f"{self.place} {self.target or (self.options or {}).get('topic', '')}".strip()


def sink_of(section: Section, statements: Mapping[str, Any]) -> JobSink:
    section.check_keys(KEYS)
    place = section.one_of(*PLACES, what="where the answer goes")
    name, last = section.path[-1], list(statements)[-1]
    statement = section.get("statement", last)
    if statement not in statements:
        hint = did_you_mean(statement, statements) or f"; there are {listed(statements, 'and')}"
        raise section.mistake(f"the query has no statement {statement!r}{hint}", "statement")
    if "table" in section and place not in ("duckdb", "postgres"):
        raise section.mistake(f"table is for databases, and this sink has {place}; leave it out", "table")
    target = "" if place == "kafka" else section.get(place) if place == "postgres" else section.place(place)
    return JobSink(
        name,
        statement,
        place,  # type: ignore[arg-type]
        target,
        section.get("table", name),
        section.place("late") if "late" in section else None,
        kafka_options(section) if place == "kafka" else None,
        section,
    )


def kafka_options(section: Section) -> dict[str, str]:
    found = flat(section.sub("kafka"))
    for key, example in (("kafka.bootstrap.servers", '"localhost:9092"'), ("topic", '"alerts"')):
        if key not in found:
            written = f'"{key}"' if "." in key else key
            raise section.mistake(f"{key} is missing; write kafka = {{ {written} = {example}, ... }}", "kafka")
    return found


def check_places(sections: Mapping[str, Section], sinks: Mapping[str, JobSink]) -> None:
    """Two sinks in one place would write over each other."""
    taken: dict[tuple[str, str], str] = {}
    for name, sink in sinks.items():
        where = (sink.target, sink.table if sink.place in ("duckdb", "postgres") else "")
        if sink.target and where in taken:
            problem = f"sink {taken[where]!r} writes there too; give each a place of its own"
            raise sections[name].mistake(problem, sink.place)
        taken[where] = name
