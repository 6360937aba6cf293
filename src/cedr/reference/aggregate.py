"""Aggregates: named values of each snapshot of each group, as one row.

An aggregate is a function from the events of a snapshot to a value. Missing values (None) are ignored, as in SQL: an
aggregate of only missing values is None, a count of them is 0. `first` and `last` use the start of the event, then the
value; not its end, which may change long after a result was final.
"""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import localcontext
from fractions import Fraction
from typing import Any

from cedr.reference.snapshot import snapshot
from cedr.temporal import Event, History, QueryError, Row
from cedr.temporal.row import order_key

__all__ = [
    "aggregate",
    "avg",
    "count",
    "count_distinct",
    "first",
    "function_of",
    "last",
    "max_",
    "min_",
    "mode",
    "quantile",
    "stddev",
    "sum_",
]

Aggregate = Callable[[list[Event]], Any]


def aggregate(history: History, by: Sequence[str] = (), **aggregates: Aggregate) -> History:
    """One row per snapshot: the attributes `by` of the group, then the aggregates by name."""
    if clash := set(by) & set(aggregates):
        raise QueryError(f"{', '.join(sorted(clash))} names both a group attribute and an aggregate; rename one")

    def row(events: list[Event]) -> list[Row]:
        group = {name: events[0].payload[name] for name in by}
        return [Row(group, **{name: f(events) for name, f in aggregates.items()})]

    return snapshot(history, row, lambda p: tuple(p[name] for name in by))


def values(events: list[Event], attribute: str) -> list[Any]:
    """The values that are not missing, in the order of start and value."""
    present = [(e.vs, order_key(v), v) for e in events if (v := e.payload[attribute]) is not None]
    return [v for *_, v in sorted(present, key=lambda k: k[:2])]


def of_values(f: Callable[[list[Any]], Any]) -> Callable[[str], Aggregate]:
    """An aggregate of one attribute: `f` of its values, None when there are none."""
    return lambda attribute: lambda events: f(found) if (found := values(events, attribute)) else None


def count(attribute: str | None = None) -> Aggregate:
    """All events, or those that have a value."""
    return lambda events: len(events if attribute is None else values(events, attribute))


def special(numbers: list[Any]) -> float | None:
    """The sum if NaN or infinities take part: NaN if there is one or both infinities, else the infinity."""
    found = {n for n in numbers if isinstance(n, float) and not math.isfinite(n)}
    if not found:
        return None
    return found.pop() if len(found) == 1 else math.nan


def nearest(value: Fraction) -> float:
    """The double nearest to an exact value, an infinity if it is too large."""
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def exact_sum(numbers: list[Any]) -> Any:
    """Doubles are rounded once, to the nearest; all else stays exact."""
    if isinstance(numbers[0], timedelta):
        return sum(numbers, timedelta(0))
    if any(isinstance(n, float) for n in numbers):
        return special(numbers) if special(numbers) is not None else nearest(sum(map(Fraction, numbers), Fraction()))
    with localcontext(prec=100):
        return sum(numbers)


def average(numbers: list[Any]) -> Any:
    """The exact sum divided by the count, rounded once."""
    if isinstance(numbers[0], timedelta):
        return sum(numbers, timedelta(0)) / len(numbers)
    if special(numbers) is not None:
        return special(numbers)
    return nearest(sum(map(Fraction, numbers), Fraction()) / len(numbers))


def sample_stddev(numbers: list[Any]) -> float | None:
    """The square root of the exact variance, rounded once; `statistics` computes with fractions."""
    if len(numbers) < 2:
        return None
    if special(numbers) is not None:
        return math.nan
    try:
        return float(statistics.stdev(map(Fraction, numbers)))
    except OverflowError:
        return math.inf


def quantile(q: float) -> Callable[[str], Aggregate]:
    """The smallest value that at least the share q of the values does not exceed; no interpolation."""
    if not 0 <= q <= 1:
        raise QueryError(f"quantile {q}: the share must lie between 0 and 1")
    share = Fraction(str(q))  # 0.07 means 7/100, not the double next to it
    return of_values(lambda found: sorted(found, key=order_key)[max(math.ceil(share * len(found)) - 1, 0)])


def count_distinct(attribute: str) -> Aggregate:
    """The number of different values; 0 when there is none."""
    return lambda events: len({order_key(v) for v in values(events, attribute)})


def most_frequent(found: list[Any]) -> Any:
    """The value that occurs most often; the smallest of several."""
    ordered = sorted(found, key=order_key)
    occurrences = Counter(map(order_key, ordered))
    return max(ordered, key=lambda v: occurrences[order_key(v)])  # the first of equal ones


def function_of(attributes: Sequence[str], f: Callable[[list[Row]], Any]) -> Aggregate:
    """A user's function of the rows, which are ordered by start and then by value, never by arrival or end."""

    def result(events: list[Event]) -> Any:
        rows = [(e.vs, [order_key(e.payload[a]) for a in attributes], e.payload.pick(*attributes)) for e in events]
        return f([row for *_, row in sorted(rows, key=lambda r: r[:2])])

    return result


sum_ = of_values(exact_sum)
avg = of_values(average)
min_ = of_values(lambda found: min(found, key=order_key))
max_ = of_values(lambda found: max(found, key=order_key))
stddev = of_values(sample_stddev)
first = of_values(lambda found: found[0])
last = of_values(lambda found: found[-1])
mode = of_values(most_frequent)
