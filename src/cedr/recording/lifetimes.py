"""Pictures of lifetimes, the way the papers draw them: events as bars over time, retracted parts as an outline.

A bar is filled where the event holds in the end. Where it was emitted and later retracted, it is an outline with
hatching, and a mark shows the end that cut it. An event that was removed is an outline alone. One that is too short to
be seen as a bar, such as an instant, is a point. A row that came too late to be used is grey and dotted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from cedr.columnar.chunk import Chunk
from cedr.plots import COLOURS, INK, check_installed, quiet
from cedr.recording.ticks import Ticks, ticks
from cedr.sources.user_times import TimeType
from cedr.temporal.element import Insert
from cedr.temporal.errors import QueryError
from cedr.temporal.stream import chains
from cedr.temporal.time import INF

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MANY = 200
FORMATS = (".png", ".svg", ".pdf")
LONGEST = 40
WIDTH = 9
"""Inches."""
NARROW = 4.8
"""The width of a letter next to the bars, in points."""
LATE = "#8c8c8c"
POINTS = 250
"""A bar is at least such a part of the picture."""


@dataclass(frozen=True)
class LifetimeBar:
    """One event: it started at `start`, ends at `end`, and its latest emitted end is `longest`."""

    label: str
    start: int
    end: int
    longest: int
    repairs: int = 0
    late: bool = False

    @property
    def removed(self) -> bool:
        return self.end == self.start

    def moved(self, by: int) -> "LifetimeBar":
        """The same event, shifted by this much; an infinite end stays infinite."""
        end, longest = (time if time == INF else time + by for time in (self.end, self.longest))
        return replace(self, start=self.start + by, end=end, longest=longest)


@dataclass(frozen=True)
class Lane:
    """The events of one stream."""

    title: str
    bars: Sequence[LifetimeBar]

    def between(self, first: int, last: int) -> "Lane":
        """The events that start before `last` and were emitted as valid at `first` or later."""
        return Lane(self.title, [bar for bar in self.bars if bar.start < last and bar.longest > first])


def bars(rows: pl.DataFrame, late: pl.DataFrame | None = None) -> list[LifetimeBar]:
    """The events of rows of chunks, in the order of their starts; `late` are those that were set aside.

    An adjust that was set aside has changed nothing, so only inserts are drawn as late.
    """
    late = rows[:0] if late is None else late
    found = []
    for chain in chains(Chunk(without(rows, late)).elements()):
        ends = [e.ve if isinstance(e, Insert) else e.ve_new for e in chain]
        found.append(LifetimeBar(label_of(chain[0].payload), chain[0].vs, ends[-1], max(ends), len(chain) - 1))
    inserts = [e for e in Chunk(late).elements() if isinstance(e, Insert)]
    found += [LifetimeBar(f"{label_of(e.payload)} (late)", e.vs, e.ve, e.ve, late=True) for e in inserts]
    return sorted(found, key=lambda bar: (bar.start, bar.end, bar.label))


def without(rows: pl.DataFrame, late: pl.DataFrame) -> pl.DataFrame:
    """Each late row once less."""
    if late.is_empty():
        return rows
    columns = rows.columns
    nth = pl.int_range(pl.len()).over(columns).alias("_nth")
    from_last = (pl.len().over(columns) - 1).cast(pl.Int64) - pl.int_range(pl.len()).over(columns)  # those came later
    numbered = rows.with_columns(from_last.alias("_nth"))
    gone = late.select(columns).with_columns(nth)
    return numbered.join(gone, on=[*columns, "_nth"], how="anti", nulls_equal=True, maintain_order="left").select(
        columns
    )


def label_of(payload: Any) -> str:
    label = ", ".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in dict(payload).values())
    return label if len(label) <= LONGEST else f"{label[:LONGEST]}…"


def draw(lanes: Sequence[Lane], kind: TimeType, path: Path, title: str) -> None:
    """Write the picture; its format is what the name ends in."""
    check_installed()
    if path.suffix.lower() not in FORMATS:
        raise QueryError(f"{path}: this format is not supported; use {', '.join(FORMATS)}")
    number = sum(len(lane.bars) for lane in lanes)
    if number > MANY:
        raise QueryError(
            f"{number:,} events are too many for a picture, the maximum is {MANY}; select a part with --since and --to"
        )
    if not number:
        raise QueryError("there are no events to draw")
    try:
        picture(lanes, kind, title).savefig(path, format=path.suffix[1:].lower(), dpi=150)
    except OSError as e:
        raise QueryError(f"{path} cannot be written: {e.strerror}") from None


def picture(lanes: Sequence[Lane], kind: TimeType, title: str) -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = sum(len(lane.bars) + 1 for lane in lanes)
    figure = Figure(figsize=(WIDTH, 1.2 + 0.28 * rows), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    first, last = min(bar.start for lane in lanes for bar in lane.bars), last_time(lanes)
    least = (last - first) / POINTS
    y, places, labels = 0, [], []
    for number, lane in enumerate(lanes):
        axes.text(0.0, y, lane.title, transform=axes.get_yaxis_transform(), va="center", color=INK, fontweight="bold")
        for bar in lane.bars:
            y += 1
            colour = LATE if bar.late else COLOURS[number % len(COLOURS)]
            draw_bar(axes, bar.moved(-first), y, colour, last - first, least)
            places.append(y)
            labels.append(bar.label)
        y += 1
    axes.set_yticks(places, labels, fontsize=8)
    axes.set_ylim(y - 0.3, -0.7)
    for text, bar in zip(axes.get_yticklabels(), (bar for lane in lanes for bar in lane.bars), strict=True):
        text.set_color(LATE if bar.late else INK)
    axes.set_title(title, loc="left", fontsize=12, color=INK, pad=12)
    room = WIDTH * 72 - NARROW * max(map(len, labels)) - 40
    dress(axes, ticks(first, last, kind, room), first)
    return figure


def last_time(lanes: Iterable[Lane]) -> int:
    """A little after the last time that is not infinite: where bars without end leave the picture."""
    times = [t for lane in lanes for bar in lane.bars for t in (bar.start, bar.end, bar.longest) if t != INF]
    return max(times) + max((max(times) - min(times)) // 10, 1)


def draw_bar(axes: "Axes", bar: LifetimeBar, y: int, colour: str, last: int, least: float) -> None:
    """Lifetimes shorter than `least` are points."""
    end, longest = min(bar.end, last), min(bar.longest, last)
    if 0 < end - bar.start < least:
        fill = "white" if bar.late else colour
        axes.plot([bar.start], [y], marker="o", color=colour, markerfacecolor=fill, markersize=6)
    elif bar.late:
        axes.barh(y, end - bar.start, left=bar.start, height=0.6, fill=False, edgecolor=colour, linestyle=":")
    elif not bar.removed:
        axes.barh(y, end - bar.start, left=bar.start, height=0.6, color=colour, alpha=0.85, edgecolor=colour)
    if longest > end:
        axes.barh(
            y, longest - end, left=end, height=0.6, fill=False, edgecolor=colour, linestyle="--", hatch="///", alpha=0.6
        )
        axes.plot([end, end], [y - 0.42, y + 0.42], color=INK, linewidth=1.4)
    if bar.removed:
        axes.plot([bar.start], [y], marker="x", color=INK, markersize=6)
    elif bar.end == INF:
        axes.plot([last], [y], marker=">", color=colour, markersize=7, clip_on=False)


def dress(axes: "Axes", found: Ticks, first: int) -> None:
    """Positions on the axis are distances from `first`, so that large times lose no digits."""
    axes.set_xticks([tick.time - first for tick in found.ticks], [tick.label for tick in found.ticks])
    if found.about:
        axes.set_xlabel(found.about, loc="right", color=INK, fontsize=9)
    quiet(axes, "x")
