"""Outages: who is without power, and nobody had planned it?

Equipment monitors and customers on the phone report zones without power; announced work is taken out. Each office
sends its reports about an hour when it has them together, not hour by hour, and then says so: no more of that hour. The
answer for an hour is told as soon as all three have said it. A monitor that is down in one hour holds up that hour
alone; a CTI, which speaks of all that is earlier, would hold up everything after it. And no hour that is over
takes room.
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


def rows(hour: int, told: list[int] | str) -> list[dict[str, Any]]:
    if told == OVER:
        return [{"zone": None, "hour": hour, "start": None, "over": True}]
    return [{"zone": zone, "hour": hour, "start": hour, "over": False} for zone in told]


def arrivals() -> Iterator[dict[str, pl.DataFrame]]:
    schema = {"zone": pl.Int64, "hour": pl.Int64, "start": pl.Int64, "over": pl.Boolean}
    return ({office: pl.DataFrame(rows(hour, told), schema)} for office, hour, told in ARRIVALS)


def answers() -> list[Result]:
    """The result after each arrival; the day has not ended."""
    return list(outages.updates(arrivals(), close=False))


def main() -> None:
    for (name, hour, told), result in zip(ARRIVALS, answers(), strict=True):
        what = "no more" if told == OVER else "zones " + ", ".join(map(str, told))
        print(f"{name}, hour {hour}: {what}")
        for zone, when in result.changelog().sort("zone").select("zone", "hour").iter_rows():
            print(f"      OUTAGE in zone {zone}, hour {when}")
    print(f"{result.metrics()['state_rows'].sum()} rows of state are left")


if __name__ == "__main__":
    main()
