"""How histories are displayed in notebooks (HTML) and rich consoles; other displays are made of the same HTML."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from cedr.temporal.row import Row
from cedr.temporal.time import INF, show

if TYPE_CHECKING:
    from rich.table import Table

    from cedr.temporal.history import Event, History

MAX_EVENTS = 30
"""Maximum number of events displayed of a history; a line below gives the number of the others."""
WIDTH = 240
"""Width of the timeline next to a history, in pixels."""
COLOR = "#26a69a"


class DisplayText(str):
    """A string that prompts and notebooks display as text, not as a quoted literal."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return pre(self)


def pre(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The cells are already HTML."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def columns(events: "Sequence[Event]") -> list[str]:
    """The columns of the payloads if all of them are rows; else a single column."""
    if not events or not all(isinstance(event.payload, Row) for event in events):
        return ["payload"]
    return list(dict.fromkeys(name for event in events for name in event.payload))


def cells(event: "Event", names: list[str]) -> list[str]:
    values = [event.payload.get(name, "") for name in names] if isinstance(event.payload, Row) else [event.payload]
    return [show(event.vs), show(event.ve), *(f"{v:.6g}" if isinstance(v, float) else str(v) for v in values)]


def more(history: "History") -> str:
    rest = len(history) - MAX_EVENTS
    return f"and {rest:,} more" if rest > 0 else ""


def history_html(history: "History") -> str:
    """A table that draws each lifetime as a bar."""
    events = list(history)[:MAX_EVENTS]
    names = columns(events)
    times = [time for event in events for time in (event.vs, event.ve) if time != INF]
    start, end = min(times, default=0), max(times, default=0)
    unit = WIDTH * 0.9 / max(end - start, 1)
    rows = [[*map(escape, cells(event, names)), bar(event, start, unit)] for event in events]
    rest = more(history)
    return html_table(["Vs", "Ve", *names, ""], rows) + (f"<p>{rest}</p>" if rest else "")


def bar(event: "Event", start: int, unit: float) -> str:
    """A lifetime without an end reaches the right edge."""
    left = (event.vs - start) * unit
    width = max(WIDTH - left if event.ve == INF else (event.ve - event.vs) * unit, 1.0)
    return (
        f'<svg width="{WIDTH}" height="12"><rect x="{left:.1f}" y="1" width="{width:.1f}" height="10" '
        f'fill="{COLOR}"/></svg>'
    )


def history_rich(history: "History") -> "Table":
    from rich.table import Table
    from rich.text import Text as Plain

    events = list(history)[:MAX_EVENTS]
    names = columns(events)
    table = Table(caption=more(history) or None)
    for name in ("Vs", "Ve", *names):
        table.add_column(Plain(name))
    for event in events:
        table.add_row(*map(Plain, cells(event, names)))
    return table
