"""How the demo looks: a picture that changes in a terminal, lines anywhere else."""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple

from rich import box
from rich.console import Console, Group, JustifyMethod
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from cedr.cli.demo.alerts import Alert, Alerts, Change, changes, overloaded, repaired
from cedr.cli.demo.levels import Batch, Telling
from cedr.cli.demo.reports import EVERY, MACHINES, START, Piece

INTRODUCTION = f"""
[bold]Which machines are overloaded?[/]

{len(MACHINES)} machines report their load every {EVERY} seconds. An alert lasts for as long as a machine's average of \
the last 30 seconds is above 90 %. But reports come late, in the wrong order, and some are corrected afterwards. You \
will see a query that answers at once and is right all the same: alerts appear, and are [yellow]repaired[/] or \
[red]taken back[/] when a late report shows that they were wrong. Then the same query runs at other levels of \
consistency: one waits until it is certain, one forgets.
"""
TITLE = "[bold]Alerts at middle consistency:[/] told at once, repaired when a report comes late"
LEGEND = "[dim]final: no report can change it any more. late: how far behind the newest report.[/]"
KEPT_LINES = 5
KEPT_BRIGHT = 3
"""So many micro-batches are shown, and for so many a note is bright."""


class Step(NamedTuple):
    """A micro-batch of the query that is watched, with the alerts before and after it."""

    number: int
    total: int
    piece: Piece
    batch: Batch
    before: Alerts
    after: Alerts

    @property
    def changes(self) -> list[Change]:
        return changes(self.before, self.after, self.piece.before)

    @property
    def repaired(self) -> set[str]:
        return repaired(self.before, self.after, self.piece.before)

    def why(self, change: Change) -> str:
        """The reason for a repair; nothing for what was to be expected."""
        return self.piece.reason(change.machine) if change.machine in self.repaired else ""

    @property
    def late(self) -> str:
        late = self.piece.late["late"].to_list()
        return f"{len(late)}, up to {max(late):.0f} s" if late else "none"

    @property
    def final(self) -> str:
        return clock(self.batch.final) if self.batch.final > START else "nothing yet"


class Lines:
    """Plain lines, for logs."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def introduce(self) -> None:
        self.console.print(INTRODUCTION)
        self.console.print(Syntax(inspect.getsource(overloaded), "python", background_color="default"))

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        self.line(f"{what} ...")
        yield

    @contextmanager
    def watching(self) -> Iterator[None]:
        yield

    def show(self, step: Step) -> None:
        self.line(
            f"micro-batch {step.number + 1} of {step.total}: {step.piece.rows.height} reports, late: {step.late}; "
            f"stream at {clock(step.piece.reached)}, final before {step.final}; {step.batch.seconds:.1f} s"
        )
        for change in step.changes:
            if change.what != "goes on":
                self.line(f"    {sentence(change, step.why(change))}")

    @contextmanager
    def comparing(self, tellings: list[Telling], total: int) -> Iterator[None]:
        self.line(f"the same {total} micro-batches at other levels of consistency ...")
        yield

    def advance(self, telling: Telling) -> None:
        """A level has come further."""

    def line(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)


class Picture(Lines):
    """The table of alerts and the last micro-batches, always the newest."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.board = Board()
        self.steps: list[Step] = []

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        with Progress(*columns, console=self.console, transient=True) as progress:
            progress.add_task(what)
            yield

    @contextmanager
    def watching(self) -> Iterator[None]:
        with Live(console=self.console, auto_refresh=False) as self.live:
            yield

    def show(self, step: Step) -> None:
        self.steps.append(step)
        self.board.work_in(step)
        self.live.update(Group(TITLE, self.board.table(step), self.last_batches(), LEGEND), refresh=True)

    def last_batches(self) -> Table:
        table = plain_table("micro-batch", "reports*", "late:14", "stream at", "final before", "repaired*", "seconds*")
        for step in self.steps[-KEPT_LINES:]:
            table.add_row(
                f"{step.number + 1} of {step.total}",
                str(step.piece.rows.height),
                step.late,
                clock(step.piece.reached),
                step.final,
                Text(str(len(step.repaired) or ""), "yellow"),
                f"{step.batch.seconds:.1f}",
            )
        return table

    @contextmanager
    def comparing(self, tellings: list[Telling], total: int) -> Iterator[None]:
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("micro-batches")
        self.console.print("Now the same at other levels of consistency:")
        with Progress(*columns, console=self.console, transient=True) as self.progress:
            self.bars = {telling.name: self.progress.add_task(telling.name, total=total) for telling in tellings}
            yield

    def advance(self, telling: Telling) -> None:
        self.progress.update(self.bars[telling.name], completed=len(telling.batches))


class Entry(NamedTuple):
    """`changed`: the micro-batch that said something surprising about it."""

    alert: Alert
    note: str
    changed: int
    gone: bool


class Board:
    """All alerts that were told, by machine and beginning, among them those that were taken back."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, datetime], Entry] = {}

    def work_in(self, step: Step) -> None:
        for change in step.changes:
            known = [self.entries.pop((was.machine, was.since)) for was in change.was]
            note, changed = (known[0].note, known[0].changed) if known else ("", step.number)
            if why := step.why(change):
                note, changed = why if change.now is None else f"{change.what}: {why}", step.number
            alert = change.now or change.was[0]
            self.entries[alert.machine, alert.since] = Entry(alert, note, changed, gone=change.now is None)

    def table(self, step: Step) -> Table:
        table = plain_table("machine:8", "since:8", "until:8", "state:10", "what happened")
        for entry in sorted(self.entries.values(), key=lambda entry: entry.alert.since):
            state, style = state_of(entry, step)
            until = "now" if state in ("new", "on") else clock(entry.alert.until)
            bright = step.number - entry.changed < KEPT_BRIGHT
            color = ("red" if entry.gone else "yellow") if bright else "dim"
            row = entry.alert.machine, clock(entry.alert.since), until
            table.add_row(*row, Text(state, style), Text(entry.note, color), style="dim" if entry.gone else "")
        return table


def state_of(entry: Entry, step: Step) -> tuple[str, str]:
    """A word for it, and its color."""
    if entry.gone:
        return "taken back", "red"
    if entry.alert.until <= step.batch.final:
        return "final", "green"
    if entry.alert.until <= step.piece.reached:
        return "over", ""
    return ("new", "bold cyan") if entry.changed == step.number and not entry.note else ("on", "bold")


def sentence(change: Change, why: str) -> str:
    alert = change.now or change.was[0]
    said = f"{alert.machine} overloaded since {clock(alert.since)}: {change.what}"
    return f"{said} ({why})" if why else said


def plain_table(*columns: str) -> Table:
    """Columns of text; a star marks one of numbers, a width the least it needs."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        name, _, width = column.partition(":")
        justify: JustifyMethod = "right" if name.endswith("*") else "left"
        table.add_column(name.rstrip("*"), no_wrap=True, justify=justify, min_width=int(width or 0))
    return table


def clock(moment: datetime) -> str:
    return f"{moment:%H:%M:%S}"


def screen() -> Lines:
    """What fits where our output goes."""
    terminal = Console(highlight=False)
    if sys.stdout.isatty() and not terminal.is_dumb_terminal:
        return Picture(terminal)
    return Lines(Console(highlight=False, width=100))
