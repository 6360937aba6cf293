"""The prompt's example stream: software is installed on machines, machines are shut down and restarted.

Rows are in the order of arrival. Two are late, and one is retracted: that restart never happened.
"""

from datetime import datetime

import polars as pl

from cedr.cli.prompt.loading import Loaded, as_stream

NAME = "machines"
QUERY = """EVENT NotRestarted
WHEN UNLESS(SEQUENCE(INSTALL x, SHUTDOWN y, 12 hours), RESTART z, 5 minutes)
WHERE CorrelationKey(machine, EQUAL)
OUTPUT x.machine AS machine, x.build AS build;"""

ARRIVING = """
    08:00  INSTALL   web-1  41
    08:02  INSTALL   web-2  41
    08:10  INSTALL   db-1   17
    08:30  SHUTDOWN  web-1
    08:33  RESTART   web-1
    09:00  SHUTDOWN  web-2
    09:10  INSTALL   app-1  7
    09:02  RESTART   web-2         late
    09:40  SHUTDOWN  db-1
    09:43  RESTART   db-1
    09:50  INSTALL   app-2  7
    09:43  RESTART   db-1          retracted
    10:00  SHUTDOWN  app-1
    10:30  INSTALL   web-1  42
    10:15  SHUTDOWN  app-2         late
    10:40  SHUTDOWN  web-1
    10:41  RESTART   web-1
"""
DAY = datetime(2024, 3, 1)


def example() -> Loaded:
    return as_stream(NAME, rows(), {"vs": "ts", "ve_new": "corrected", "types": "kind"})


def rows() -> pl.DataFrame:
    """A retracted event ends where it starts."""
    return pl.DataFrame([row(line.split()) for line in ARRIVING.strip().splitlines()])


def row(cells: list[str]) -> dict[str, object]:
    clock, kind, machine, *more = cells
    hour, minute = clock.split(":")
    time = DAY.replace(hour=int(hour), minute=int(minute))
    build = int(more[0]) if more and more[0].isdecimal() else None
    return {
        "ts": time,
        "kind": kind,
        "machine": machine,
        "build": build,
        "corrected": time if "retracted" in more else None,
    }
