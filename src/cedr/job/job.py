"""A validated job file and its compiled query. `read("job.toml")` raises a `JobError` for any mistake."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cedr.job.level import at_level
from cedr.job.mistake import JobError
from cedr.job.places import places
from cedr.job.query import Streams, streams_of
from cedr.job.section import TABLE, Section, show
from cedr.job.sinks import JobSink, check_places, sink_of
from cedr.job.sources import JobSource, check_there, source_of
from cedr.job.spark import SparkSettings, spark_of
from cedr.job.variables import filled
from cedr.plan.analysis.warning import warnings_of
from cedr.plan.node import topological
from cedr.plan.nodes import Level, Source
from cedr.secret import Discreet
from cedr.stream import Stream

KEYS = {"query": TABLE, "sources": TABLE, "consistency": TABLE, "sinks": TABLE, "spark": TABLE}
AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, repr=False)
class Job(Discreet):
    """`streams` are the statements of the query by name, at the requested level; the last is the answer."""

    file: Path
    sources: Mapping[str, JobSource]
    streams: Streams
    sinks: Mapping[str, JobSink]
    spark: SparkSettings
    query: Section

    @property
    def answer(self) -> str:
        return list(self.streams)[-1]

    def stream(self, sink: JobSink) -> Stream:
        return self.streams[sink.statement]

    def read_by(self, stream: Stream) -> list[JobSource]:
        """The sources a stream reads."""
        names = {node.name for node in topological(stream.plan) if isinstance(node, Source)}
        return [source for name, source in self.sources.items() if name in names]

    def warnings(self) -> list[str]:
        """Valid settings that probably do not do what the user expects."""
        used_statements = dict.fromkeys(sink.statement for sink in self.sinks.values())
        used = {source.name for name in used_statements for source in self.read_by(self.streams[name])}
        unused = [f"source {name!r} is not read by the query" for name in self.sources if name not in used]
        found = [text for name in used_statements for text in warnings_of(Level(self.streams[name].plan))]
        notes = [note for source in self.sources.values() for note in source.notes]
        return notes + unused + found


def read(path: str | Path) -> Job:
    """The job of a file."""
    file = Path(path)
    top = filled(Section(str(path), file.absolute().parent, (), *parsed(file, str(path))))
    for key, value in top.values.items():
        if key in KEYS and not isinstance(value, dict):
            raise top.mistake(f"{show(value)} is not a table; write [{key}]", key)
    top.check_keys(KEYS)
    for key, what in (("query", "what to compute"), ("sources", "where rows come from")):
        if key not in top:
            example = "[query]" if key == "query" else "[sources.NAME]"
            raise top.mistake(f"the table [{key}] is missing, {what}; write {example}")
    sources = {name: source_of(section) for name, section in tables(top, "sources").items()}
    if not sources:
        raise top.mistake("no source is defined; write [sources.NAME]", "sources")
    level = section_of(top, "consistency")
    streams = streams_of(top.sub("query"), sources)
    streams = {name: at_level(level, stream) for name, stream in streams.items()}
    sections = tables(top, "sinks") if "sinks" in top else {}
    sinks = {name: sink_of(section, streams) for name, section in sections.items()}
    check_places(sources, sinks)
    spark = spark_of(section_of(top, "spark"))
    last = list(streams)[-1]
    job = Job(file.absolute(), sources, streams, sinks or {last: JobSink(last, last)}, spark, top.sub("query"))
    for source in job.sources.values():
        check_there(source)
    return job


def parsed(file: Path, name: str) -> tuple[dict[str, Any], Any]:
    """The values of the file, and their places."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except IsADirectoryError:
        raise JobError(name, None, "", "is a folder; name the job file in it, such as job.toml") from None
    except OSError as e:
        raise JobError(name, None, "", f"cannot be read: {e.strerror}") from None
    except UnicodeDecodeError as e:
        raise JobError(name, None, "", f"is not UTF-8 text (byte {e.start})") from None
    text = text.replace("\r\n", "\n")
    try:
        return tomllib.loads(text), places(text)
    except RecursionError:
        raise JobError(name, None, "", "is nested too deeply; a job file needs only a few levels") from None
    except tomllib.TOMLDecodeError as e:
        at = AT.search(str(e))
        problem = AT.sub("", str(e))
        line = int(at[1]) if at and at[1] else text.count("\n") + 1
        column = f"column {at[2]}: " if at and at[2] else "the end of the file: "
        raise JobError(name, line, "", f"{column}{problem[:1].lower()}{problem[1:]}; this is not valid TOML") from None


def section_of(top: Section, key: str) -> Section:
    """The table of this name, or an empty one."""
    return top.sub(key) if key in top else Section(top.file, top.folder, (key,), {}, top.places)


def tables(top: Section, key: str) -> dict[str, Section]:
    """The tables in a table, by name."""
    section = top.sub(key)
    for name, value in section.values.items():
        if not isinstance(value, dict):
            raise section.mistake(f"{show(value)} is not a table; write [{key}.NAME] with the settings below it", name)
    return {name: section.sub(name) for name in section.values}
