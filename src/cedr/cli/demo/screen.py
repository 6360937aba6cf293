"""The demo's display: live tables in a terminal, lines elsewhere."""

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
from cedr.cli.demo.levels import Batch, LevelRun
from cedr.cli.demo.reports import EVERY, MACHINES, START, ArrivedRows

INTRODUCTION = f"""
[bold]Which machines are overloaded?[/]

{len(MACHINES)} machines report their load every {EVERY} seconds. An alert lasts for as long as a machine's average of \
the last 30 seconds is above 90 %. But reports arrive late and out of order, and some are corrected afterwards. You \
will see a query that answers at once and is still right in the end: alerts appear, and are [yellow]repaired[/] or \
[red]retracted[/] when a late report shows that they were wrong. Then the same query runs at other levels of \
consistency: one waits until its answer is final, one forgets.
"""
TITLE = "[bold]Alerts at middle consistency:[/] emitted at once, repaired when a report arrives late"
LEGEND = "[dim]final: no report can change it any more. late: how far behind the newest report.[/]"
KEPT_LINES = 5
KEPT_BRIGHT = 3
"""Number of micro-batches that are shown, and for how many of them a note is highlighted."""


class WatchedBatch(NamedTuple):
    """A micro-batch of the watched query, with the alerts before and after it."""

    number: int
    total: int
    piece: ArrivedRows
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
        """The reason for a repair; empty for a change that is not a repair."""
        return self.piece.reason(change.machine) if change.machine in self.repaired else ""

    @property
    def late(self) -> str:
        late = self.piece.late["late"].to_list()
        return f"{len(late)}, up to {max(late):.0f} s" if late else "none"

    @property
    def final(self) -> str:
        return clock(self.batch.final) if self.batch.final > START else "nothing yet"


class DemoLines:
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

    def show(self, step: WatchedBatch) -> None:
        self.line(
            f"micro-batch {step.number + 1} of {step.total}: {step.piece.rows.height} reports, late: {step.late}; "
            f"stream at {clock(step.piece.reached)}, final before {step.final}; {step.batch.seconds:.1f} s"
        )
        for change in step.changes:
            if change.what != "continues":
                self.line(f"    {sentence(change, step.why(change))}")

    @contextmanager
    def comparing(self, runs: list[LevelRun], total: int) -> Iterator[None]:
        self.line(f"The same {total} micro-batches at other levels of consistency ...")
        yield

    def advance(self, run: LevelRun) -> None:
        """A level has made progress."""

    def line(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)


class DemoPicture(DemoLines):
    """The table of alerts and the latest micro-batches, updated in place."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.board = Board()
        self.steps: list[WatchedBatch] = []

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

    def show(self, step: WatchedBatch) -> None:
        self.steps.append(step)
        self.board.update(step)
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
    def comparing(self, runs: list[LevelRun], total: int) -> Iterator[None]:
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("micro-batches")
        self.console.print("Now the same at other levels of consistency:")
        with Progress(*columns, console=self.console, transient=True) as self.progress:
            self.bars = {run.name: self.progress.add_task(run.name, total=total) for run in runs}
            yield

    def advance(self, run: LevelRun) -> None:
        self.progress.update(self.bars[run.name], completed=len(run.batches))


class ListedAlert(NamedTuple):
    """`changed`: the micro-batch that last repaired it."""

    alert: Alert
    note: str
    changed: int
    gone: bool


class Board:
    """All alerts that were emitted, by machine and start, including the retracted ones."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, datetime], ListedAlert] = {}

    def update(self, step: WatchedBatch) -> None:
        for change in step.changes:
            replaced = [self.entries.pop((was.machine, was.since)) for was in change.was]
            note, changed = (replaced[0].note, replaced[0].changed) if replaced else ("", step.number)
            if why := step.why(change):
                note, changed = why if change.now is None else f"{change.what}: {why}", step.number
            alert = change.now or change.was[0]
            self.entries[alert.machine, alert.since] = ListedAlert(alert, note, changed, gone=change.now is None)

    def table(self, step: WatchedBatch) -> Table:
        table = plain_table("machine:8", "since:8", "until:8", "state:10", "what happened")
        for entry in sorted(self.entries.values(), key=lambda entry: entry.alert.since):
            state, style = state_of(entry, step)
            until = "now" if state in ("new", "on") else clock(entry.alert.until)
            bright = step.number - entry.changed < KEPT_BRIGHT
            color = ("red" if entry.gone else "yellow") if bright else "dim"
            row = entry.alert.machine, clock(entry.alert.since), until
            table.add_row(*row, Text(state, style), Text(entry.note, color), style="dim" if entry.gone else "")
        return table


def state_of(entry: ListedAlert, step: WatchedBatch) -> tuple[str, str]:
    """Its label and color."""
    if entry.gone:
        return "retracted", "red"
    if entry.alert.until <= step.batch.final:
        return "final", "green"
    if entry.alert.until <= step.piece.reached:
        return "over", ""
    return ("new", "bold cyan") if entry.changed == step.number and not entry.note else ("on", "bold")


def sentence(change: Change, why: str) -> str:
    alert = change.now or change.was[0]
    text = f"{alert.machine} overloaded since {clock(alert.since)}: {change.what}"
    return f"{text} ({why})" if why else text


def plain_table(*columns: str) -> Table:
    """Columns of text; a star marks a column of numbers, `:N` the minimum width."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        name, _, width = column.partition(":")
        justify: JustifyMethod = "right" if name.endswith("*") else "left"
        table.add_column(name.rstrip("*"), no_wrap=True, justify=justify, min_width=int(width or 0))
    return table


def clock(moment: datetime) -> str:
    return f"{moment:%H:%M:%S}"


def screen() -> DemoLines:
    """The display that fits where the output goes."""
    terminal = Console(highlight=False)
    if sys.stdout.isatty() and not terminal.is_dumb_terminal:
        return DemoPicture(terminal)
    return DemoLines(Console(highlight=False, width=100))
