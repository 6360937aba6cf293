"""Stock ticker: answer at once, and repair the answer when the feed corrects itself, for up to 72 hours.

The average price per symbol and day at middle consistency that remembers 72 hours. A correction takes a reading back
and gives another one; the averages that were computed with it are retracted, too. Later corrections are late rows.
"""

import warnings

import cedr
from cedr import Insert, Row, retract
from cedr.runtime.result import Result

warnings.simplefilter("ignore", cedr.LateWarning)  # what is late is shown below

DAY = 24
readings = cedr.source("readings", {"symbol": str, "price": float}, vs="vs", ve="ve", times=cedr.Times(ve_new="ve_new"))
averages = (
    readings.tumbling(DAY)
    .group_by("symbol")
    .agg(average=cedr.avg("price"), n=cedr.count())
    .with_latency("ordered")
    .with_consistency(block=0, remember=72)
)


def at(hour: int, symbol: str, price: float) -> Insert:
    return Insert(hour, hour + 1, Row(symbol=symbol, price=price))


def corrected(hour: int, symbol: str, wrong: float, right: float) -> list:
    return [retract(hour, hour + 1, Row(symbol=symbol, price=wrong)), at(hour, symbol, right)]


ARRIVALS = [
    ("day 0, hour 9", [at(9, "ACME", 10.0), at(9, "BOLT", 50.0)]),
    ("hour 12: ACME seems to have jumped", [at(12, "ACME", 110.0)]),
    ("day 1, hour 9", [at(33, "ACME", 12.0)]),
    ("a correction, 21 hours late: 11, not 110", corrected(12, "ACME", 110.0, 11.0)),
    ("day 3, hour 9", [at(81, "ACME", 13.0)]),
    ("day 4, hour 9", [at(105, "BOLT", 52.0)]),
    ("a correction that comes after 96 hours", corrected(9, "BOLT", 50.0, 51.0)),
]


def answers() -> list[Result]:
    """The result after each arrival, and after the end."""
    return list(averages.updates(iter([elements for _, elements in ARRIVALS])))


def main() -> None:
    given_up = 0
    for (text, _), result in zip([*ARRIVALS, ("the end", [])], answers(), strict=True):
        print(text)
        changes = result.changelog().sort("vs", "symbol", "change", descending=[False, False, True])
        for change, vs, *_, symbol, average, _ in changes.iter_rows():
            print(f"    {'taken back:' if change == 'remove' else '':11} day {vs // DAY}, {symbol} {average:.2f}")
        for late in result.late()[given_up:].iter_rows(named=True):
            print(f"    too late:   {late['symbol']} {late['price']:.2f}")
        given_up = result.late().height


if __name__ == "__main__":
    main()
