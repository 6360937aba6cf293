"""`cedr check JOB`: validate a job file and print its columns, sinks and warnings."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cedr.job.job import Job
    from cedr.stream import Stream

JobFile = Annotated[Path, typer.Argument(help="The job file, such as job.toml.", show_default=False)]


def check(
    job: JobFile,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    strict: Annotated[bool, typer.Option(help="Exit with code 1 if there are warnings.")] = False,
) -> None:
    """Validate a job file: its settings, its query, and the first rows of its files. Prints columns and warnings.

    Exit code 0 if the job is valid, 2 if it is not.
    """
    from cedr.cli.as_json import as_json
    from cedr.job.job import read
    from cedr.job.rows import check_lengths, peek
    from cedr.job.writable import check_writable
    from cedr.secret import hidden

    made = read(job)
    check_writable(made.sinks.values())
    for source in made.sources.values():
        peek(source)
        check_lengths(made, source)
    warnings = made.warnings()
    if json:
        print(hidden(as_json({"job": str(job), **as_data(made), "warnings": warnings})))
    else:
        print(hidden("\n".join([f"{job}: OK", *as_lines(made), *(f"  warning: {text}" for text in warnings)])))
    raise typer.Exit(1 if strict and warnings else 0)


def as_data(made: "Job") -> dict[str, object]:
    return {
        "sources": {name: {"from": str(s), "columns": columns(s.stream)} for name, s in made.sources.items()},
        "answers": {name: columns(stream) for name, stream in made.streams.items()},
        "sinks": {name: {"to": str(sink), "statement": sink.statement} for name, sink in made.sinks.items()},
    }


def as_lines(made: "Job") -> list[str]:
    from cedr.plan.schema import show_schema

    lines = [f"  source {name} ({show_schema(s.stream.schema)}) from {s}" for name, s in made.sources.items()]
    lines += [f"  answer {name} ({show_schema(stream.schema)})" for name, stream in made.streams.items()]
    return lines + [f"  sink {name}: {sink.statement} to {sink}" for name, sink in made.sinks.items()]


def columns(stream: "Stream") -> dict[str, str]:
    return {name: str(kind) for name, kind in stream.schema.items()}
