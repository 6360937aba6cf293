"""One contestant's turn with one question: speed, memory and whether the answer is right, or why there is none."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from cedr.plan.schema import first_line
from peers import data, turn
from peers.contestants import Contestant
from peers.data import Shape
from peers.environments import NotInstalledError
from peers.processes import SideFailedError, watch
from peers.questions import Question, Tables

WARM = 4
"""The warm-up uses one of this number of events."""
PATIENCE = 900.0
"""Seconds for a turn, the start and the warm-up included."""


@dataclass(frozen=True)
class Turn:
    """`unable` is the reason why there is no result."""

    events: int = 0
    """That the question is about: those of the streams it reads."""
    seconds: float = 0.0
    peak: float = 0.0
    """GiB, all processes at once."""
    version: str = ""
    unable: str = ""

    @property
    def speed(self) -> float:
        """Events a second."""
        return self.events / self.seconds


@dataclass(frozen=True)
class Prepared:
    """A question with its input on disk and its right answer."""

    question: Question
    folder: Path
    tables: Tables
    expected: pl.DataFrame


def prepare(question: Question, folder: Path, shape: Shape, csv: bool) -> Prepared:
    streams = question.workload.streams
    for part, size in (("warm", shape.part(WARM)), ("in", shape)):
        question.write(folder / part, streams, size)
        if csv:
            data.write_csv(folder / part, streams)
    tables = data.read(folder / "in", streams)
    return Prepared(question, folder, tables, question.workload.batch(tables))


def take(who: Contestant, prepared: Prepared, log: Callable[[str], None], apart: bool = True) -> Turn:
    """`apart`: in a process of its own, which is what counts; otherwise here, for a quick look."""
    question, out = prepared.question, prepared.folder / who.name
    out.mkdir()
    if not who.guest and question.workload.unable.get(who.name):
        return Turn(unable=question.workload.unable[who.name])
    try:
        if apart:
            command = who.command(question.name, prepared.folder, out, log)
            watched = watch(command, who.environment(), PATIENCE, out)
            outcome, peak = watched.result, watched.peak
        else:
            outcome, peak = turn.turn(who.name, question.name, prepared.folder, out), 0.0
    except NotInstalledError as e:
        return Turn(unable=str(e))
    except SideFailedError as e:
        log(str(e))
        return Turn(unable=e.why)
    if "unable" in outcome:
        return Turn(unable=outcome["unable"])
    try:
        wrong = question.wrong(who.title, pl.read_parquet(out / turn.ANSWER), prepared.expected, prepared.tables)
    except (OSError, PolarsError) as e:
        return Turn(unable=f"its answer cannot be read: {first_line(e)}")
    events = sum(table.height for table in prepared.tables.values())
    return Turn(
        events,
        outcome["seconds"],
        peak / 1024,
        outcome["version"],
        f"its answer is not right: {wrong}" if wrong else "",
    )
