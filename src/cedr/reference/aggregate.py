"""Aggregates: named values of each snapshot of each group, as one row.

An aggregate is a function from the events of a snapshot to a value. Missing values (None) do not take part, as in
SQL: an aggregate of nothing but missing values is None, a count of them is 0. `first` and `last` go by the start of
the event, then by value; not by its end, which may change long after an answer was settled.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from cedr.reference.snapshot import snapshot
from cedr.temporal import Event, History, QueryError, Row
from cedr.temporal.row import order_key

Aggregate = Callable[[list[Event]], Any]


def aggregate(history: History, by: Sequence[str] = (), **aggregates: Aggregate) -> History:
    """One row per snapshot: the group's attributes `by`, then the aggregates by name."""
    if clash := set(by) & set(aggregates):
        raise QueryError(f"{', '.join(sorted(clash))} names both a group attribute and an aggregate; rename one")

    def row(events: list[Event]) -> list[Row]:
        group = {name: events[0].payload[name] for name in by}
        return [Row(group, **{name: f(events) for name, f in aggregates.items()})]

    return snapshot(history, row, lambda p: tuple(p[name] for name in by))


def values(events: list[Event], attribute: str) -> list[Any]:
    """The values that are there, in the order of start and value."""
    known = [(e.vs, order_key(v), v) for e in events if (v := e.payload[attribute]) is not None]
    return [v for *_, v in sorted(known, key=lambda k: k[:2])]


def of_values(f: Callable[[list[Any]], Any]) -> Callable[[str], Aggregate]:
    """An aggregate of one attribute: `f` of its values, None when there are none."""
    return lambda attribute: lambda events: f(found) if (found := values(events, attribute)) else None


def count(attribute: str | None = None) -> Aggregate:
    """All events, or those that have a value."""
    return lambda events: len(events if attribute is None else values(events, attribute))


def exact_sum(numbers: list[Any]) -> Any:
    return math.fsum(numbers) if any(isinstance(n, float) for n in numbers) else sum(numbers)


def sample_stddev(numbers: list[Any]) -> float | None:
    if len(numbers) < 2:
        return None
    mean = math.fsum(numbers) / len(numbers)
    return math.sqrt(math.fsum((n - mean) ** 2 for n in numbers) / (len(numbers) - 1))


def quantile(q: float) -> Callable[[str], Aggregate]:
    """The smallest value that at least the share q of the values does not exceed; no interpolation."""
    if not 0 <= q <= 1:
        raise QueryError(f"quantile {q}: the share must lie between 0 and 1")
    return of_values(lambda found: sorted(found, key=order_key)[max(math.ceil(q * len(found)) - 1, 0)])


sum_ = of_values(exact_sum)
avg = of_values(lambda found: math.fsum(found) / len(found))
min_ = of_values(lambda found: min(found, key=order_key))
max_ = of_values(lambda found: max(found, key=order_key))
stddev = of_values(sample_stddev)
first = of_values(lambda found: found[0])
last = of_values(lambda found: found[-1])
