"""`cedr replicas`: a query that runs several times at once, so that any but one may fail, and its versions."""

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
"""Seconds between two lines about how far members have come."""

app = typer.Typer(no_args_is_help=True, help="Run a query with replicas: any but one may fail, versions change live.")

Folder = Annotated[
    Path, typer.Argument(help="The folder of the replicas: their checkpoints, what they tell, the answer.")
]
Job = Annotated[str, typer.Argument(help="file.py:function or module:function; it returns cedr.Replica(query, data).")]
Number = Annotated[int, typer.Option("--replicas", "-n", help="How many.", min=1)]


@app.command()
def run(
    job: Job,
    folder: Folder,
    replicas: Number = 2,
    master: Annotated[str, typer.Option(help="Spark's master, for each of them.")] = "local[*]",
) -> None:
    """Run a query with replicas and merge what they tell, until all is told or somebody stops it.

    Whoever dies is started again. In a folder that has replicas already these go on.
    """
    from cedr.replicas.job import job_at
    from cedr.replicas.supervisor import Supervisor

    job_at(job)
    job = absolute(job)
    supervisor = Supervisor(str(folder), master, lambda text: print(text, flush=True))
    supervisor.ask_for(job, replicas)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with view(supervisor.control) as look:
            good = supervisor.run(look)
    except KeyboardInterrupt:
        good = True
    sys.exit(0 if good else 1)


@app.command()
def status(folder: Folder, json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Who is there, and how far."""
    from cedr.replicas.supervisor import known_control

    found = known_control(str(folder)).table()
    if json:
        print(found.write_json())
    else:
        from rich.console import Console

        Console().print(shown(known_control(str(folder))))


@app.command()
def cutover(
    folder: Folder,
    job: Job,
    replicas: Number = 2,
    timeout: Annotated[float, typer.Option(help="Seconds the new version has to catch up.")] = 3600.0,
) -> None:
    """Warm a new version up beside the old one, then retire the old one. Consumers see one unbroken stream."""
    from cedr.replicas.job import job_at
    from cedr.replicas.supervisor import cut_over

    job_at(job)
    job = absolute(job)
    cut_over(str(folder), job, replicas, lambda text: print(text, flush=True), timeout)


@app.command()
def retire(folder: Folder, name: Annotated[str, typer.Argument(help="The replica that is over.")]) -> None:
    """Say that a replica is over; its name cannot come back."""
    from cedr.replicas.replicas import retire
    from cedr.replicas.supervisor import known_control

    known_control(str(folder))
    retire(str(folder.absolute()), name)


@app.command()
def stop(folder: Folder) -> None:
    """Stop all of them; `run` goes on later."""
    from cedr.replicas.supervisor import known_control

    known_control(str(folder)).stop_all()


def absolute(job: str) -> str:
    """Processes elsewhere find the file, too."""
    where, _, name = job.rpartition(":")
    return f"{Path(where).absolute()}:{name}" if where.endswith(".py") else job


# --- what a user sees ------------------------------------------------------------------------------------------------


def shown(control: "Control") -> "Table":
    """One line per member."""
    from rich.table import Table

    show = shown_times(control)
    table = Table(title=f"feedback: {show(control.feedback)}", title_justify="left", title_style="dim")
    for name in ("member", "version", "wish", "state", "batch", "has told up to", "error"):
        table.add_column(name)
    for row in control.table().iter_rows(named=True):
        cti = "" if row["cti"] is None else show(row["cti"])
        batch = "" if row["batch"] is None else str(row["batch"])
        table.add_row(row["name"], str(row["version"]), row["wish"], row["state"], batch, cti, row["error"])
    return table


def shown_times(control: "Control") -> Callable[[int], str]:
    """Times as the input has them."""
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
    """In a terminal a table that changes, elsewhere a line when somebody has come further."""
    from rich.console import Console
    from rich.live import Live

    if Console().is_terminal:
        with Live(shown(control), refresh_per_second=2, transient=True) as live:
            yield lambda: live.update(shown(control))
        return
    last: dict[str, object] = {}

    def lines() -> None:
        show = shown_times(control)
        for row in control.table().iter_rows(named=True):
            now = row["state"], row["batch"]
            if last.get(row["name"]) != now and row["batch"] is not None and time.monotonic() > due[0]:
                cti = "" if row["cti"] is None else f", has told up to {show(row['cti'])}"
                print(f"{row['name']}: {row['state']}, batch {row['batch']}{cti}", flush=True)
                last[row["name"]] = now
        if time.monotonic() > due[0]:
            due[0] = time.monotonic() + EVERY

    due = [0.0]
    yield lines
