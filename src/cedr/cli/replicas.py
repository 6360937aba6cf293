"""`cedr replicas`: run a query several times in parallel, so that all but one may fail, and change versions live."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from cedr.replicas.control import Control

EVERY = 5.0
"""Seconds between progress lines."""

app = typer.Typer(
    no_args_is_help=True, help="Run a query with replicas: all but one may fail, and versions change live."
)

Folder = Annotated[
    Path, typer.Argument(help="The folder of the replicas: their checkpoints, their output, and the answer.")
]
Job = Annotated[str, typer.Argument(help="file.py:function or module:function; returns cedr.Replica(query, data).")]
Number = Annotated[int, typer.Option("--replicas", "-n", help="Number of replicas.", min=1)]


@app.command()
def run(
    job: Job,
    folder: Folder,
    replicas: Number = 2,
    master: Annotated[str, typer.Option(help="Spark's master, for each replica.")] = "local[*]",
) -> None:
    """Run a query with replicas and merge their output, until the input ends or you stop it.

    Replicas that fail are restarted. If the folder already has replicas, they continue.
    """
    from cedr.replicas.job import job_at
    from cedr.replicas.supervisor import Supervisor

    job_at(job)
    job = absolute(job)
    supervisor = Supervisor(str(folder), master, lambda text: print(text, flush=True))
    supervisor.request(job, replicas)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with view(supervisor.control) as look:
            good = supervisor.run(look)
    except KeyboardInterrupt:
        good = True
    sys.exit(0 if good else 1)


@app.command()
def status(folder: Folder, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the replicas and their progress."""
    from cedr.replicas.supervisor import existing_control

    found = existing_control(str(folder)).table()
    if json:
        print(found.write_json())
    else:
        from rich.console import Console

        Console().print(status_table(existing_control(str(folder))))


@app.command()
def cutover(
    folder: Folder,
    job: Job,
    replicas: Number = 2,
    timeout: Annotated[float, typer.Option(help="Seconds the new version may take to catch up.")] = 3600.0,
) -> None:
    """Start a new version next to the old one, and retire the old one. Consumers see one uninterrupted stream."""
    from cedr.replicas.job import job_at
    from cedr.replicas.supervisor import cut_over

    job_at(job)
    job = absolute(job)
    cut_over(str(folder), job, replicas, lambda text: print(text, flush=True), timeout)


@app.command()
def retire(folder: Folder, name: Annotated[str, typer.Argument(help="The replica to retire.")]) -> None:
    """Retire a replica; its name cannot be used again."""
    from cedr.replicas.replicas import retire
    from cedr.replicas.supervisor import existing_control

    existing_control(str(folder))
    retire(str(folder.absolute()), name)


@app.command()
def stop(folder: Folder) -> None:
    """Stop all replicas; `run` resumes them."""
    from cedr.replicas.supervisor import existing_control

    existing_control(str(folder)).stop_all()


def absolute(job: str) -> str:
    """Make the path of the file absolute, so that other processes find it."""
    where, _, name = job.rpartition(":")
    return f"{Path(where).absolute()}:{name}" if where.endswith(".py") else job


# --- display ----------------------------------------------------------------------------------------------------------


def status_table(control: "Control") -> "Table":
    """One row per replica."""
    from rich.table import Table

    show = time_format(control)
    table = Table(title=f"feedback: {show(control.feedback)}", title_justify="left", title_style="dim")
    for name in ("member", "version", "desired", "state", "batch", "emitted up to", "error"):
        table.add_column(name)
    for row in control.table().iter_rows(named=True):
        cti = "" if row["cti"] is None else show(row["cti"])
        batch = "" if row["batch"] is None else str(row["batch"])
        table.add_row(row["name"], str(row["version"]), row["desired"], row["state"], batch, cti, row["error"])
    return table


def time_format(control: "Control") -> Callable[[int], str]:
    """Formats times like those of the input."""
    import polars as pl

    from cedr.replicas.copies import copy_folder
    from cedr.replicas.replicas import table_of
    from cedr.temporal.time import INF, MIN, show

    copies = control.folder.path.removesuffix("control") + "copies"
    found = (table_of(copy_folder(copies, copy.name)) for copy in Path(copies).glob("*"))
    kind = next((table.time_type for table in found if table is not None), pl.Int64())

    def text(t: int) -> str:
        if t in (INF, MIN) or not isinstance(kind, pl.Datetime):
            return show(t)
        return str(pl.Series([t]).cast(kind)[0])

    return text


@contextmanager
def view(control: "Control") -> Iterator[Callable[[], object]]:
    """A live table in a terminal, elsewhere a line when a replica has made progress."""
    from rich.console import Console
    from rich.live import Live

    if Console().is_terminal:
        with Live(status_table(control), refresh_per_second=2, transient=True) as live:
            yield lambda: live.update(status_table(control))
        return
    last: dict[str, object] = {}

    def lines() -> None:
        show = time_format(control)
        for row in control.table().iter_rows(named=True):
            now = row["state"], row["batch"]
            if last.get(row["name"]) != now and row["batch"] is not None and time.monotonic() > due[0]:
                cti = "" if row["cti"] is None else f", emitted up to {show(row['cti'])}"
                print(f"{row['name']}: {row['state']}, batch {row['batch']}{cti}", flush=True)
                last[row["name"]] = now
        if time.monotonic() > due[0]:
            due[0] = time.monotonic() + EVERY

    due = [0.0]
    yield lines
