"""`cedr run JOB`: run the query of a job file, on Spark or in this process, and show its progress.

local.py      in this process
spark.py      on Spark
stopping.py   Ctrl-C and SIGTERM
view.py       output: a live table in a terminal, lines elsewhere, JSON for programs
"""

from typing import Annotated

import typer

from cedr.cli.check import JobFile


def run(
    job: JobFile,
    once: Annotated[bool, typer.Option("--once", help="Exit after processing all available input.")] = False,
    close: Annotated[
        bool, typer.Option("--close/--no-close", help="With --once: treat the input as complete and emit all results.")
    ] = True,
    local: Annotated[
        bool, typer.Option("--local", help="Run in this process, without Spark; sources must be files.")
    ] = False,
    shards: Annotated[
        int | None,
        typer.Option("--shards", min=1, help="Number of shards; another than before splits or moves the state."),
    ] = None,
    upgrade: Annotated[
        bool, typer.Option("--upgrade", help="Continue a changed query with the rows and results of the one before.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only problems and the answer, no progress.")
    ] = False,
) -> None:
    """Run a job until it is stopped; with --once or --local until all its input is processed.

    Exit code 0 when it finished or was stopped, 1 when it failed, 2 for an invalid job file.
    """
    import sys

    from cedr.cli.run.view import view_of
    from cedr.job.job import read
    from cedr.job.writable import check_writable
    from cedr.temporal.errors import QueryError

    if local and not close:
        raise QueryError("--no-close: a local run starts from scratch each time and emits every result; leave it out")
    if local and shards:
        raise QueryError("--shards: a local run has no shards; leave it out")
    if local and upgrade:
        raise QueryError("--upgrade: a local run starts from scratch each time; leave it out")
    made = read(job)
    check_writable(made.sinks.values())
    for text in made.warnings() if not (local or once) else ():
        print(f"warning: {text}", file=sys.stderr)
    with view_of(json, quiet) as view:
        if local:
            from cedr.cli.run.local import run_locally

            good = run_locally(made, view)
        else:
            from cedr.cli.run.spark import run_on_spark

            good = run_on_spark(made, view, once, close, shards, upgrade)
    raise typer.Exit(0 if good else 1)
