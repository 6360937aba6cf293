"""`cedr plot`: draw the lifetimes of events and their changes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import polars as pl

    from cedr.recording.lifetimes import Lane


def plot(
    what: Annotated[
        Path,
        typer.Argument(help="A changelog, or a job file, which is run in this process.", show_default=False),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output file; its name ends in .png, .svg or .pdf.")
    ] = Path("lifetimes.svg"),
    against: Annotated[
        Path | None, typer.Option(help="Another changelog to draw above, such as the input.", show_default=False)
    ] = None,
    since: Annotated[str, typer.Option(help="Only events that hold at this time or later.", show_default=False)] = "",
    to: Annotated[str, typer.Option(help="Only events that start before this time.", show_default=False)] = "",
    title: Annotated[str, typer.Option(help="Title of the picture.", show_default=False)] = "",
) -> None:
    """Draw events as bars over time; results that were retracted are hatched.

    For a job, its input and its answer; for a changelog, its contents.
    """
    from cedr.plots import check_installed
    from cedr.recording.changelog import check_times, read_changelog
    from cedr.recording.history import as_valid_time
    from cedr.recording.lifetimes import Lane, bars, draw
    from cedr.temporal.errors import QueryError
    from cedr.temporal.time import INF, MIN

    check_installed()
    if what.suffix == ".toml":
        if against is not None:
            raise QueryError(f"--against {against}: for a job its own input is drawn above; leave it out")
        lanes, kind = of_job(what)
    else:
        recorded = read_changelog(what)
        above = [] if against is None else [read_changelog(against)]
        for other in above:
            check_times(other, recorded)
        lanes = [Lane(Path(r.place).stem, bars(r.rows)) for r in (*above, recorded)]
        kind = recorded.time_type
    first = as_valid_time(since, kind, "--since") if since else MIN
    last = as_valid_time(to, kind, "--to") if to else INF
    draw([lane.between(first, last) for lane in lanes], kind, output, title or what.stem)
    print(output)


def of_job(file: Path) -> "tuple[list[Lane], pl.DataType]":
    """The input of a job and its answer, as if each row had arrived alone, so that every repair is visible."""
    import polars as pl

    from cedr.job.job import read
    from cedr.job.rows import Rows
    from cedr.recording.lifetimes import Lane, bars
    from cedr.runtime.local import LocalRun
    from cedr.sources.ingest import Ingest

    job = read(file)
    stream = job.streams[job.answer]
    rows = {made.name: Rows.of(made) for made in job.read_by(stream)}
    tables = {name: pl.concat(found) for name, source in rows.items() if (found := list(source.batches()))}
    run = LocalRun(stream.fragment(), chunk_size=1)
    arrived: dict[str, list[pl.DataFrame]] = {}
    for name, table in tables.items():
        arrived[name] = [chunk.rows for chunk in Ingest(rows[name].source).chunks(table, table.height)]
    answer = [chunk.rows for chunk in run.steps(tables, close=True)]
    lanes = []
    for name, found in arrived.items():
        frame = pl.concat(found)
        lanes.append(Lane(f"input: {name}", bars(frame, rejected(frame, run.late))))
    return [*lanes, Lane(f"output: {job.answer}", bars(pl.concat(answer)))], run.time_type()


def rejected(arrived: "pl.DataFrame", late: "list[pl.DataFrame]") -> "pl.DataFrame":
    """The arrived rows that are among the late ones."""
    import polars as pl

    schema = dict(arrived.schema)
    fitting = [frame.select(*schema) for frame in late if all(frame.schema.get(n) == k for n, k in schema.items())]
    return pl.concat([arrived[:0], *fitting]).join(arrived, on=list(schema), how="semi", nulls_equal=True)
