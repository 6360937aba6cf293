"""The load reports of the demo's machines, and when they arrive.

Every machine reports every five seconds. Most reports arrive at once, but one in eight is delayed; two machines have a
slow network, three lose their connection and send their reports when it is back, and one has a broken sensor, whose
reports are corrected later. All of it follows from a fixed seed, so that every demo shows the same.
"""

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

START = datetime(2024, 3, 1, 10, 0, 0)
SECONDS, EVERY, STEP = 240, 5, 10
"""In seconds: the length of the stream, the interval of a machine's reports, and the interval covered by one file."""
COLUMNS = "time timestamp_ntz, machine string, load double, corrected timestamp_ntz"
MACHINES = [f"{kind}-{number:02}" for kind in ("web", "app", "db", "cache") for number in range(1, 11)]
SEED = 57


class MachineCondition(NamedTuple):
    """A condition of a machine between two seconds of the stream."""

    machine: str
    begin: int
    end: int

    def covers(self, machine: str, second: float) -> bool:
        return self.machine == machine and self.begin <= second < self.end


OVERLOADED = [
    MachineCondition("app-04", -30, 28),
    MachineCondition("cache-08", 9, 19),
    MachineCondition("web-03", 20, 95),
    MachineCondition("db-02", 60, 150),
    MachineCondition("cache-05", 118, 134),
    MachineCondition("web-09", 105, 165),
    MachineCondition("app-07", 120, 170),
]
SLOW = [MachineCondition("web-03", 20, 60), MachineCondition("web-09", 105, 145)]
"""Every other report is delayed for long."""
OFFLINE = {
    MachineCondition("cache-08", 0, 9): 24,
    MachineCondition("cache-05", 98, 118): 138,
    MachineCondition("db-02", 98, 131): 141,
}
"""Reports of that time arrive in this second."""
BROKEN, CORRECTED_AT = MachineCondition("db-08", 58, 88), 97
"""The sensor reports 99 %; the corrections arrive in this second."""


class LoadReport(NamedTuple):
    """`at`: the second in which it arrives. A report with `corrected` retracts an earlier one."""

    at: float
    time: datetime
    machine: str
    load: float
    corrected: datetime | None = None


def reports() -> list[LoadReport]:
    """All reports in the order in which they arrive."""
    rng = np.random.default_rng(SEED)
    found: list[LoadReport] = []
    for place, machine in enumerate(MACHINES):
        usual = rng.uniform(50, 65)
        for number in range(SECONDS // EVERY):
            second = round(number * EVERY + place % EVERY + rng.uniform(0, 0.9), 3)
            load = rng.uniform(96, 99.9) if busy(machine, second) else usual + rng.normal(0, 5)
            under_way = rng.uniform(3, 27) if rng.random() < 1 / 8 else 0.0
            at = min(arrival(machine, second, number, under_way), SECONDS - 1)
            found += sent(LoadReport(at, START + timedelta(seconds=second), machine, round(load, 1)), second)
    return sorted(found, key=lambda report: report.at)


def busy(machine: str, second: float) -> bool:
    return any(span.covers(machine, second) for span in OVERLOADED)


def arrival(machine: str, second: float, number: int, under_way: float) -> float:
    for span, back in OFFLINE.items():
        if span.covers(machine, second):
            return back
    slow = number % 2 == 1 and any(span.covers(machine, second) for span in SLOW)
    return second + (24 if slow else under_way)


def sent(true: LoadReport, second: float) -> list[LoadReport]:
    """A report; from the broken sensor a wrong one, and later its correction."""
    if not BROKEN.covers(true.machine, second):
        return [true]
    wrong = true._replace(at=second, load=99.0)
    return [wrong, wrong._replace(at=CORRECTED_AT, corrected=wrong.time), true._replace(at=CORRECTED_AT)]


class ArrivedRows(NamedTuple):
    """Rows that arrive together. `reached`: the time of the newest report; `before`: the same before this piece."""

    rows: pl.DataFrame
    before: datetime
    reached: datetime

    @property
    def late(self) -> pl.DataFrame:
        """Rows with a time that the stream had already passed, and by how many seconds."""
        seconds = (pl.lit(self.before) - pl.col("time")).dt.total_milliseconds() / 1000
        return self.rows.with_columns(seconds.alias("late")).filter(pl.col("late") > 0)

    def reason(self, machine: str) -> str:
        """Why an earlier result for a machine was wrong."""
        late = self.late.filter(pl.col("machine") == machine)
        if wrong := late["corrected"].count():
            return (
                "1 report was wrong and is corrected" if wrong == 1 else f"{wrong} reports were wrong and are corrected"
            )
        times, seconds = late["time"].to_list(), late["late"].to_list()
        if len(times) == 1:
            return f"the report of {times[0]:%H:%M:%S} was {seconds[0]:.0f} s late"
        return f"{len(times)} reports were up to {max(seconds):.0f} s late"


def pieces() -> list[ArrivedRows]:
    """What arrives in each ten seconds."""
    steps: list[list[LoadReport]] = [[] for _ in range(SECONDS // STEP)]
    for report in reports():
        steps[int(report.at) // STEP].append(report)
    found, reached = [], START
    for step in steps:
        before, reached = reached, max(reached, *(report.time for report in step))
        found.append(ArrivedRows(frame(step), before, reached))
    return found


def frame(step: list[LoadReport]) -> pl.DataFrame:
    moment = pl.Datetime("us")
    schema: dict[str, Any] = {"time": moment, "machine": pl.String, "load": pl.Float64, "corrected": moment}
    return pl.DataFrame([report[1:] for report in step], schema=schema, orient="row")


def write(found: list[ArrivedRows], folder: Path) -> None:
    """One file for each piece. Spark reads files in the order of their age."""
    folder.mkdir()
    for number, piece in enumerate(found):
        file = folder / f"{number:03}.parquet"
        piece.rows.write_parquet(file)
        os.utime(file, (START.timestamp() + number, START.timestamp() + number))
