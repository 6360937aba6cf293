"""The benchmark harness: contestants run in turn, results are medians with their spread, compared with targets.

A benchmark is a file `benchmarks/NAME.py` with a function `run(report)`. It measures with `alternate`, which runs all
contestants in turn for several rounds after a warm-up round, so that ratios come from one run, and adds its figures to
the report. `./cedr bench NAME` prints the table and exits with 0 only if every target is met.

A benchmark with a parameter also draws plots: `speed = report.plot("speed", "Speed", "inputs", "M/s")`, then
`report.add("R3, 4 inputs", value, "M/s", at=speed.at("R3", 4))` adds a value to both the table and the plot.
"""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from cedr.plots import Plot, PlotPoint, Target, draw
from cedr.temporal.errors import QueryError


def events(usual: int) -> int:
    """The number of events of a benchmark: the usual one, or CEDR_BENCH_EVENTS."""
    text = os.environ.get("CEDR_BENCH_EVENTS")
    if text is None:
        return usual
    number = text.replace("_", "")
    if not number.isdecimal() or not int(number):
        raise QueryError(f"CEDR_BENCH_EVENTS={text}: it must be a whole number of events, such as 1000000")
    return int(number)


@dataclass(frozen=True)
class Figure:
    """One result. `bar` is its target: a minimum, or with `at_most` a maximum."""

    name: str
    value: float
    unit: str
    bar: float | None = None
    at_most: bool = False
    spread: float | None = None
    note: str = ""

    @property
    def ok(self) -> bool:
        if self.bar is None:
            return True
        return self.value <= self.bar if self.at_most else self.value >= self.bar


@dataclass
class BenchmarkReport:
    title: str
    figures: list[Figure] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    console: Console = field(default_factory=Console)

    def add(self, name: str, value: float, unit: str, *, at: PlotPoint | None = None, **more: Any) -> None:
        """Add a figure; `at` is its place in a plot, which then also shows its spread and its target."""
        figure = Figure(name, value, unit, **more)
        self.figures.append(figure)
        if at:
            at.plot.add(at.series, at.x, value, figure.spread or 0.0)
            if figure.bar is not None:
                at.plot.bars[at.series] = Target(figure.bar, figure.at_most)
        mark = "" if figure.bar is None else ("  ok" if figure.ok else "  MISSED")
        self.console.print(f"  {name}: {value:,.3g} {unit}{mark}", highlight=False)

    def plot(self, name: str, title: str, x: str, y: str, log: str = "", names: tuple[str, ...] = ()) -> Plot:
        """A new plot; fill it with `add(..., at=plot.at(series, x))` or with its method `line`."""
        self.plots.append(Plot(name, title, x, y, log, names=names))
        return self.plots[-1]

    def draw(self, folder: Path) -> None:
        """Write every plot that has points into the folder, and print the paths."""
        drawn = [draw(plot, folder) for plot in self.plots if plot.series]
        self.print(f"plots: {', '.join(map(str, drawn))}" if drawn else "this benchmark has no plots")

    def print(self, text: str) -> None:
        self.console.print(text, style="dim", highlight=False)

    @property
    def ok(self) -> bool:
        return all(f.ok for f in self.figures)

    def table(self) -> Table:
        table = Table(title=f"{self.title}\n{machine()}")
        for name in ("what", "value", "spread", "unit", "bar", ""):
            table.add_column(name, justify="right" if name in ("value", "spread", "bar") else "left")
        for f in self.figures:
            bar = "" if f.bar is None else f"{'≤' if f.at_most else '≥'} {f.bar:,.4g}"
            spread = "" if f.spread is None else f"± {f.spread:.0%}"
            mark = f.note if f.bar is None else ("[green]ok[/] " if f.ok else "[red]missed[/] ") + f.note
            table.add_row(f.name, f"{f.value:,.4g}", spread, f.unit, bar, mark)
        return table

    def write_json(self, path: Path) -> None:
        rows = [{**asdict(f), "ok": f.ok} for f in self.figures]
        path.write_text(json.dumps(rows, indent=1))


def alternate(contestants: Mapping[str, Callable[[], Any]], rounds: int = 5) -> dict[str, list[float]]:
    """The seconds each contestant took in each round, without the first, which is the warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, contestant in contestants.items():
            start = time.perf_counter()
            contestant()
            if number:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def median(values: list[float]) -> float:
    return statistics.median(values)


def spread(values: list[float]) -> float:
    """Half the range, relative to the median."""
    return (max(values) - min(values)) / 2 / median(values)


def machine() -> str:
    names = ("polars", "numpy", "numba", "pyarrow")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    return f"Python {platform.python_version()}, {versions}; {os.cpu_count()} cores, {processor()}"


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def one_core() -> None:
    """Bind this process to one core, so that figures are per core whatever threads libraries start."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
