"""Difference: at each instant what the left side has more often than the right (bag monus).

At an instant only the number of copies is defined, so the result is in coalesced form: the k-th copy is alive where at
least k are left. With a key it is the anti join: a left event is absent while any right event has its key.
"""

from collections.abc import Callable
from typing import Any

from cedr.reference.join import anti_join
from cedr.temporal import Event, History
from cedr.temporal.history import count_changes, levels


def difference(left: History, right: History, key: Callable[[Any], Any] | None = None) -> History:
    if key:
        return anti_join(left, right, lambda p1, p2: key(p1) == key(p2))
    right_groups = right.groups(lambda p: p)
    return History(
        Event(time.start, time.end, p)
        for p, members in left.groups(lambda p: p).items()
        for time in levels(count_changes([(e, 1) for e in members] + [(e, -1) for e in right_groups.get(p, History())]))
    )
