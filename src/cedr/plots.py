"""Plots of benchmark results: named series of points in one picture.

A `Plot` is data: it can be filled and inspected without matplotlib, which only `draw` needs (`pip install
'cedr[plots]'`). Drawing needs no display and changes none of matplotlib's global settings.
"""

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from cedr.temporal.errors import CedrError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#6b4c9a", "#4d4d4d")
"""A palette that is safe for color blindness (after Okabe and Ito)."""
MARKERS = "osD^vPX*"
FEW = 30
"""Maximum number of points of a series that is drawn with markers."""
FEW_TICKS = 12
INK, FAINT = "#333333", "#d9d9d9"


class Point(NamedTuple):
    x: float
    y: float
    spread: float = 0.0
    """Half the range that was measured, relative to y."""


class PlotPoint(NamedTuple):
    """The position of a value: this x of this series of a plot."""

    plot: "Plot"
    series: str
    x: float


class Target(NamedTuple):
    """The target of a series: a minimum, or with `at_most` a maximum."""

    value: float
    at_most: bool = False

    def __str__(self) -> str:
        return f"{'at most' if self.at_most else 'at least'} {self.value:,.4g}"


@dataclass
class Plot:
    """One picture. `name` is its file name; `x` and `y` are the titles of the axes.

    `log` lists the axes with a logarithmic scale: "", "x", "y" or "xy". A series of many points is a line, of few
    points a line with markers. Bars are dashed lines in the color of their series. `foremost` names the series to
    emphasize: it is drawn above the others, thick and dark. With `names`, x is a position among them, starting at 0,
    and each series has a column there.
    """

    name: str
    title: str
    x: str
    y: str
    log: str = ""
    foremost: str = ""
    series: dict[str, list[Point]] = field(default_factory=dict)
    bars: dict[str, Target] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    def add(self, series: str, x: float, y: float, spread: float = 0.0) -> None:
        self.series.setdefault(series, []).append(Point(x, y, spread))

    def at(self, series: str, x: float) -> PlotPoint:
        return PlotPoint(self, series, x)

    def line(self, series: str, xs: Iterable[float], ys: Iterable[float]) -> None:
        """Set all points of a series."""
        self.series[series] = [Point(float(x), float(y)) for x, y in zip(xs, ys, strict=True)]


def check_installed() -> None:
    """Fail before a long measurement rather than after it."""
    if importlib.util.find_spec("matplotlib") is None:
        raise CedrError("plots need the package matplotlib: pip install 'cedr[plots]'")


def draw(plot: Plot, folder: Path) -> Path:
    """Write the plot into the folder as a PNG; returns its path. Its text chunks name the title and the series."""
    check_installed()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{plot.name}.png"
    about = {"Title": plot.title, "Description": "; ".join(plot.series)}
    picture(plot).savefig(path, format="png", dpi=150, metadata=about)
    return path


def picture(plot: Plot) -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.8), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for number, name in enumerate(plot.series):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        look = Look(INK, marker, 2.4, 3.0) if name == plot.foremost else Look(colour, marker)
        points = sorted(plot.series[name])
        hidden = "y" in plot.log and not any(p.y for p in points)  # a logarithmic scale has no zero
        if plot.names:
            draw_columns(axes, name, points, colour, number, len(plot.series))
        else:
            draw_series(axes, f"{name} (zero)" if hidden else name, points, look)
        if bar := plot.bars.get(name):
            axes.axhline(bar.value, color=look.colour, linestyle=(0, (6, 4)), linewidth=1, label=f"{name}: {bar}")
    scale(axes, plot)
    dress(axes, plot)
    return figure


class Look(NamedTuple):
    colour: str
    marker: str
    width: float = 1.6
    above: float = 2.0


def draw_series(axes: "Axes", name: str, points: list[Point], look: Look) -> None:
    xs, ys = [p.x for p in points], [p.y for p in points]
    (line,) = axes.plot(xs, ys, color=look.colour, linewidth=look.width, zorder=look.above, label=name)
    if len(points) <= FEW:
        line.set(marker=look.marker, markersize=5.5, markeredgecolor="white")
    if any(p.spread for p in points):
        low, high = [p.y * (1 - p.spread) for p in points], [p.y * (1 + p.spread) for p in points]
        axes.fill_between(xs, low, high, color=look.colour, alpha=0.15, linewidth=0)


def draw_columns(axes: "Axes", name: str, points: list[Point], colour: str, number: int, count: int) -> None:
    """Series `number` of `count`: the columns of one x next to each other, then a gap of a fifth."""
    width = 0.8 / count
    middles = [p.x + (number - (count - 1) / 2) * width for p in points]
    axes.bar(middles, [p.y for p in points], width, color=colour, label=name)


def scale(axes: "Axes", plot: Plot) -> None:
    """Scales start at zero or are logarithmic; if there are few values of x, each gets a tick."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    xs = sorted({point.x for points in plot.series.values() for point in points})
    if "x" in plot.log:
        axes.set_xscale("log")
    if "y" in plot.log:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 1_000 else (1,)))
        if plot.names:
            axes.set_ylim(bottom=min(1.0, low))  # columns have the same baseline in all plots
    else:
        axes.set_ylim(bottom=0)
    if plot.names:
        axes.set_xticks(range(len(plot.names)), plot.names)
    elif 1 < len(xs) <= FEW_TICKS:
        axes.set_xticks(xs)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    plain = FuncFormatter(lambda value, _: f"{value:,.6g}")
    if not plot.names:
        axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(plain)


def dress(axes: "Axes", plot: Plot) -> None:
    axes.set_title(plot.title, loc="left", fontsize=12, color=INK, pad=12)
    axes.set_xlabel(plot.x, color=INK)
    axes.set_ylabel(plot.y, color=INK)
    quiet(axes, "y")
    if len(plot.series) + len(plot.bars) > 1:
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, labelcolor=INK, fontsize=9)


def quiet(axes: "Axes", grid: Literal["x", "y"]) -> None:
    """A faint grid behind everything, and no frame."""
    axes.grid(axis=grid, color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(colors=INK, length=0)
