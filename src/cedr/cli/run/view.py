"""The output of a run: a live table in a terminal, elsewhere a line per step, or JSON for programs."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import polars as pl

from cedr.cli.as_json import as_json
from cedr.job.reports import StepReport
from cedr.runtime.why_waiting import aligned_columns as aligned
from cedr.secret import hidden


class View(Protocol):
    def step(self, report: StepReport) -> None:
        """A step is done."""

    def message(self, event: str, text: str, **data: Any) -> None:
        """Events other than steps: start, end, failure."""

    def show(self, name: str, answer: pl.DataFrame) -> None:
        """An answer without a sink."""


class LineView:
    def step(self, report: StepReport) -> None:
        print(report, flush=True)

    def message(self, event: str, text: str, **data: Any) -> None:
        print(hidden(text), file=sys.stderr if event == "failed" else sys.stdout, flush=True)

    def show(self, name: str, answer: pl.DataFrame) -> None:
        print(f"\n{name}\n{aligned(answer)}", flush=True)


class QuietView(LineView):
    """Answers without a sink, failures, and rows that could not be used."""

    def step(self, report: StepReport) -> None:
        pass

    def message(self, event: str, text: str, **data: Any) -> None:
        if event in ("failed", "late", "waiting"):
            super().message(event, text, **data)


class JsonView:
    """`event` is the type of each object: step, started, waiting, reached, ended, stopped, failed, late or answer."""

    def step(self, report: StepReport) -> None:
        self._line({"event": "step", **report.to_json()})

    def message(self, event: str, text: str, **data: Any) -> None:
        self._line({"event": event, "message": hidden(text), **data})

    def show(self, name: str, answer: pl.DataFrame) -> None:
        self._line({"event": "answer", "name": name, "rows": answer.to_dicts()})

    def _line(self, content: dict[str, Any]) -> None:
        print(as_json(content), flush=True)


class LiveView(LineView):
    """One row per answer, updated in place; totals since the start."""

    def __init__(self, live: Any) -> None:
        self.live, self.started = live, time.monotonic()
        self.sums: dict[str, list[int]] = {}
        self.last: dict[str, StepReport] = {}

    def step(self, report: StepReport) -> None:
        before = self.sums.get(report.sink, [0, 0, 0, 0])
        now = (report.rows_in, report.rows_out, report.repairs, report.late)
        self.sums[report.sink] = [a + b for a, b in zip(before, now, strict=True)]
        self.last[report.sink] = report
        self.live.update(self.table())

    def message(self, event: str, text: str, **data: Any) -> None:
        self.live.console.print(hidden(text), markup=False, highlight=False)

    def show(self, name: str, answer: pl.DataFrame) -> None:
        self.live.console.print(f"\n{name}\n{aligned(answer)}", markup=False, highlight=False)

    def table(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        table = Table(title=f"running for {time.monotonic() - self.started:.0f} s", title_justify="left")
        for name in (
            "answer",
            "batch",
            "rows/s",
            "rows in",
            "rows out",
            "repairs",
            "late",
            "state",
            "final up to",
            "lag",
        ):
            table.add_column(name, justify="left" if name == "answer" else "right")
        for name, r in self.last.items():
            counts = [f"{n:,}" for n in self.sums[name]]
            state = f"{r.state_rows:,}"
            table.add_row(Text(name), str(r.batch), f"{r.rate:,.0f}", *counts, state, r.progress or "", r.lag or "")
        return table


@contextmanager
def view_of(json: bool, quiet: bool = False) -> Iterator[View]:
    from rich.console import Console
    from rich.live import Live

    if json:
        yield JsonView()
    elif quiet:
        yield QuietView()
    elif not (console := Console()).is_terminal:
        yield LineView()
    else:
        with Live(console=console, refresh_per_second=4) as live:
            yield LiveView(live)
