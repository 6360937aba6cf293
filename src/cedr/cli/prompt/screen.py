"""Shows answers, changes and errors of the prompt."""

import sys
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import polars as pl
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDE = 160
"""Width of output that is not a terminal."""
COLORS = {"insert": "green", "remove": "red", "adjust": "yellow"}


class PromptScreen:
    def __init__(self) -> None:
        self.console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)

    def print(self, text: str, style: str = "") -> None:
        """Print lines without wrapping, so that a caret stays below what it points to."""
        self.console.print(Text(text, style), soft_wrap=True)

    def error(self, text: str) -> None:
        self.print(f"error: {text}", "red")

    def draw(self, name: str, frame: pl.DataFrame, max_rows: int, what: str = "row") -> None:
        """The first rows, and the total number."""
        count = f"{frame.height:,} {what}{'' if frame.height == 1 else 's'}"
        if frame.height:
            self.console.print(table(frame.head(max_rows)))
        more = f"; showing the first {max_rows:,}, \\rows N shows more" if frame.height > max_rows else ""
        self.print(f"{name}: {count}{more}", "dim")


def table(frame: pl.DataFrame) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    for name, kind in frame.schema.items():
        drawn.add_column(Text(name), justify="right" if kind.is_numeric() else "left")
    for row in frame.iter_rows(named=True):
        drawn.add_row(*cells(row), style=COLORS.get(str(row.get("change")), "") if "ve_new" in row else "")
    return drawn


def cells(row: dict[str, Any]) -> Iterable[Text]:
    """A missing end is infinite, except the new end of an insert or a remove."""
    for name, value in row.items():
        endless = name == "ve" or (name == "ve_new" and row.get("change") == "adjust")
        yield Text("∞" if value is None and endless else cell(value))


def cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S}" + (f".{value.microsecond:06}" if value.microsecond else "")
        case dict():
            return " ".join(cell(v) for v in value.values())
        case list():
            return ", ".join(cell(v) for v in value)
    return str(value)
