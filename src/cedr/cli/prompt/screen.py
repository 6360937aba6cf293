"""How the prompt shows answers, changes and mistakes."""

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
"""Columns for output that goes to no terminal."""
COLORS = {"insert": "green", "remove": "red", "adjust": "yellow"}


class Screen:
    def __init__(self) -> None:
        self.console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)

    def say(self, text: str, style: str = "") -> None:
        """Lines as they are, so that a caret stays below what it points to."""
        self.console.print(Text(text, style), soft_wrap=True)

    def mistake(self, text: str) -> None:
        self.say(f"error: {text}", "red")

    def draw(self, name: str, frame: pl.DataFrame, most: int, what: str = "row") -> None:
        """The first rows, and how many more there are."""
        count = f"{frame.height:,} {what}{'' if frame.height == 1 else 's'}"
        if frame.height:
            self.console.print(table(frame.head(most)))
        more = f"; the first {most:,} are shown, \\rows N shows more" if frame.height > most else ""
        self.say(f"{name}: {count}{more}", "dim")


def table(frame: pl.DataFrame) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    for name, kind in frame.schema.items():
        drawn.add_column(Text(name), justify="right" if kind.is_numeric() else "left")
    for row in frame.iter_rows(named=True):
        drawn.add_row(*cells(row), style=COLORS.get(str(row.get("change")), "") if "ve_new" in row else "")
    return drawn


def cells(row: dict[str, Any]) -> Iterable[Text]:
    """An end that is missing is no end, except the new end of what only comes or goes."""
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
