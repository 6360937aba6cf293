"""cedr compared with other systems: the same queries, the same files, correct results only, one machine, two cores.

Five workloads, and Nexmark's queries q0 to q8, over events from a seed, 20 % of them late by up to 5 s. cedr local,
cedr on Spark, Spark's own streaming, Flink SQL, Bytewax and Pathway take turns, each in a process of its own; a polars
program that gets all events at once gives the answer that everybody's is compared with, and the limit. Each works
through a quarter of the input first, which does not count. Then the clock runs from the first input read to the last
result written. Systems that cedr does not need are installed at their first turn, into `.peers`. Who cannot answer is
named with the reason. See docs/benchmarks.md. Another number of events: CEDR_BENCH_EVENTS.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness import BenchmarkReport, events
from rich.table import Table

from cedr.plots import PlotPoint

sys.path.insert(0, str(Path(__file__).parent))

from peers.choice import chosen
from peers.contest import Turn, prepare, take
from peers.contestants import LOCAL, ON_SPARK, Contestant
from peers.data import Shape
from peers.questions import CORRECTED, Question
from peers.rooms import room

SHAPE = Shape(events=events(1_000_000), files=4, keys=1_000, rate=2_000, grain=1_000)
QUICK = replace(SHAPE, events=40_000)
BARS = {LOCAL.name: 5.0, ON_SPARK.name: 1.0}
"""The ratio to the speed of the best other streaming system."""
Turns = dict[str, Turn]


def run(report: BenchmarkReport, quick: bool = False, only: str = "") -> None:
    shape = QUICK if quick else SHAPE
    contestants, groups = chosen(only or (LOCAL.name if quick else ""))
    report.print(f"{shape.events:,} events in {shape.files} files at {shape.rate:,} events/s of event time")
    versions: set[str] = set()
    for title, questions in groups.items():
        playing = [who for who in contestants if title != CORRECTED or who.takes_corrections]
        found = {q.name: asked(report, q, shape, playing, quick) for q in questions}
        plot = report.plot(title.lower().replace(" ", "_"), f"{title}: speed", "", "k events/s", "y", tuple(found))
        for place, (name, turns) in enumerate(found.items()):
            for who in playing:
                add_figures(report, name, who, turns[who.name], plot.at(who.title, place))
            compare(report, name, playing, turns, quick)
            versions |= {turn.version for turn in turns.values() if turn.version}
        report.console.print(side_by_side(title, found, playing))
        for line in reasons(found, playing):
            report.print(line)
    report.print("versions: " + ", ".join(sorted(versions)))


def asked(
    report: BenchmarkReport, question: Question, shape: Shape, contestants: Sequence[Contestant], quick: bool
) -> Turns:
    report.print(f"{question.name}: {question.about}")
    with room() as folder:
        prepared = prepare(question, folder, shape, csv=any(who.guest for who in contestants))
        turns = {}
        for who in contestants:
            turns[who.name] = take(who, prepared, report.print, apart=not quick or who.guest)
            report.print(f"  {who.title}: {summary(turns[who.name])}")
        return turns


def add_figures(report: BenchmarkReport, name: str, who: Contestant, turn: Turn, at: PlotPoint) -> None:
    if not turn.unable:
        note = f"{turn.seconds:.2f} s, {turn.peak:.1f} GiB"
        report.add(f"{name}: {who.title}", turn.speed / 1e3, "k events/s", at=at, note=note)
    if who.ours:
        report.add(f"{name}: {who.title}, answers agree", float(not turn.unable), "of 1", bar=1, note=turn.unable)


def compare(report: BenchmarkReport, name: str, contestants: Sequence[Contestant], turns: Turns, quick: bool) -> None:
    """cedr over the best of the others that stream and answer."""
    others = [who for who in contestants if who.streaming and not who.ours and not turns[who.name].unable]
    if not others:
        return
    best = min(others, key=lambda who: turns[who.name].seconds)
    for ours in (who for who in contestants if who.ours and not turns[who.name].unable):
        ratio = turns[best.name].seconds / turns[ours.name].seconds
        bar = None if quick else BARS[ours.name]
        report.add(f"{name}: {ours.title} over the best other", ratio, "x", bar=bar, note=best.title)


def side_by_side(title: str, found: dict[str, Turns], contestants: Sequence[Contestant]) -> Table:
    table = Table(title=f"{title}, k events/s")
    table.add_column("")
    for who in contestants:
        table.add_column(who.title, justify="right")
    for name, turns in found.items():
        table.add_row(name, *(shown(turns[who.name]) or "n/a" for who in contestants))
    return table


def shown(turn: Turn) -> str:
    return "" if turn.unable else f"{turn.speed / 1e3:,.0f}"


def summary(turn: Turn) -> str:
    return f"n/a: {turn.unable}" if turn.unable else f"{shown(turn)} k events/s"


def reasons(found: dict[str, Turns], contestants: Sequence[Contestant]) -> list[str]:
    """Why there is no result, where there is none."""
    titles = {who.name: who.title for who in contestants}
    return [
        f"n/a: {titles[who]}, {name}: {turn.unable}"
        for name, turns in found.items()
        for who, turn in turns.items()
        if turn.unable
    ]
