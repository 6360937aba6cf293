"""Outages: which zones have no power although no work was announced?

Equipment monitors and customers on the phone report zones without power; announced work is excluded. An office sends
its reports about an hour when they are complete, not in the order of hours, and then closes the hour. The result of an
hour is emitted as soon as all three offices have closed it. A monitor that is down in one hour delays that hour alone;
a CTI, which is about all earlier times, would delay everything after it. Closed hours need no state.
"""

from collections.abc import Iterator
from typing import Any

import polars as pl

import cedr
from cedr.runtime.result import Result

REPORT = {"zone": int, "hour": int}


def office(name: str) -> cedr.Stream:
    """Reports about an hour hold for that hour. A row with `over` is a punctuation: no more of its hour, ever."""
    return cedr.source(name, REPORT, vs="start", progress=cedr.Progress(punctuation="over", promises="hour"))


OFFICES = ("monitors", "phones", "announced")
monitors, phones, announced = map(office, OFFICES)

# hour        0    1    2    3
# monitors    |z7##|    |z7##|
# phones      |z7##|z4##|            either is a report,
# announced        |z4##|            unless the work was announced
outages = monitors.union(phones).distinct().difference(announced).with_consistency("strong")

OVER = "over"
ARRIVALS: list[tuple[str, int, list[int] | str]] = [
    ("monitors", 0, [7]),
    ("phones", 1, [4, 5]),
    ("phones", 0, [7, 9]),
    ("announced", 1, [4]),
    ("announced", 0, OVER),
    ("monitors", 0, OVER),
    ("phones", 0, OVER),  # hour 0 is complete: zones 7 and 9
    ("monitors", 2, [7]),
    ("monitors", 2, OVER),  # the monitors have not sent hour 1 yet
    ("phones", 2, OVER),
    ("announced", 2, OVER),  # hour 2 is complete before hour 1 is
    ("phones", 1, OVER),
    ("announced", 1, OVER),
    ("monitors", 1, [4]),
    ("monitors", 1, OVER),  # now hour 1 is
]


def rows(hour: int, report: list[int] | str) -> list[dict[str, Any]]:
    if report == OVER:
        return [{"zone": None, "hour": hour, "start": None, "over": True}]
    return [{"zone": zone, "hour": hour, "start": hour, "over": False} for zone in report]


def arrivals() -> Iterator[dict[str, pl.DataFrame]]:
    schema = {"zone": pl.Int64, "hour": pl.Int64, "start": pl.Int64, "over": pl.Boolean}
    return ({office: pl.DataFrame(rows(hour, report), schema)} for office, hour, report in ARRIVALS)


def answers() -> list[Result]:
    """The result after each arrival; the day has not ended."""
    return list(outages.updates(arrivals(), close=False))


def main() -> None:
    for (name, hour, report), result in zip(ARRIVALS, answers(), strict=True):
        what = "no more" if report == OVER else "zones " + ", ".join(map(str, report))
        print(f"{name}, hour {hour}: {what}")
        for zone, when in result.changelog().sort("zone").select("zone", "hour").iter_rows():
            print(f"      OUTAGE in zone {zone}, hour {when}")
    print(f"{result.metrics()['state_rows'].sum()} rows of state are left")


if __name__ == "__main__":
    main()
