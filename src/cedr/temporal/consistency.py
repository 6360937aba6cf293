"""Consistency: how long a query may wait, how long it remembers, and what its output then guarantees.

`Consistency(block, remember)` is a point of the triangle in Figure 9; `STRONG`, `MIDDLE` and `WEAK` are its corners.
The predicates below are Definitions 3 to 5: given the outputs of one query for logically equivalent inputs, they check
whether the query kept its level, and if not, where it failed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cedr.temporal.duration import Duration, duration
from cedr.temporal.element import Data, Element, Stream
from cedr.temporal.errors import QueryError
from cedr.temporal.history import History
from cedr.temporal.interval import Interval, interval_or_none
from cedr.temporal.stream import canonical, data, ordered
from cedr.temporal.time import INF, MIN, show


@dataclass(frozen=True, slots=True)
class Consistency:
    """`block`: how long an element may be held back to wait for others. `remember`: for how long results are repaired.

    Both are durations from 0 to INF: chronons, or text such as "5s". `block` must not be longer than `remember`, as it
    would have no effect.
    """

    block: int
    remember: int

    def __init__(self, block: Duration, remember: Duration) -> None:
        object.__setattr__(self, "block", duration(block, "block", least=0))
        object.__setattr__(self, "remember", duration(remember, "remember", least=0))
        if self.block > self.remember:
            raise QueryError(
                f"block={show(self.block)} is longer than remember={show(self.remember)}: a query cannot wait for "
                "what it no longer remembers; lower block or raise remember"
            )

    def __str__(self) -> str:
        name = {STRONG: "strong", MIDDLE: "middle", WEAK: "weak"}.get(self)
        knobs = f"block={show(self.block)}, remember={show(self.remember)}"
        return f"{name} ({knobs})" if name else knobs


STRONG = Consistency(block=INF, remember=INF)
"""Wait until results are final: output in order, never repaired."""
MIDDLE = Consistency(block=0, remember=INF)
"""Emit at once, repair whatever a late element made wrong."""
WEAK = Consistency(block=0, remember=0)
"""Emit at once, remember nothing."""


class SyncPoint(NamedTuple):
    """Definition 2: after `arrived` inserts and adjusts, every t of `times` separates past from future.

    All elements that arrived have sync time <= t, all later ones have sync time > t.
    """

    times: Interval
    arrived: int


def sync_points(stream: Iterable[Element]) -> list[SyncPoint]:
    """All sync points of a stream, one per position in arrival order."""
    syncs = [e.sync for e in data(stream)]
    points = []
    for arrived in range(len(syncs) + 1):
        past = max(syncs[:arrived], default=MIN)
        future = min(syncs[arrived:], default=INF)
        times = interval_or_none(past, future)
        if times:
            points.append(SyncPoint(times, arrived))
    return points


def is_sync_point(stream: Iterable[Element], t: int, arrived: int) -> bool:
    """Definition 2 literally: `t` and arrival position `arrived` (counted from 1) separate past from future."""
    return all(
        (position <= arrived and e.sync <= t) or (position > arrived and e.sync > t)
        for position, e in enumerate(data(stream), start=1)
    )


def strong_violation(one: Stream, two: Stream) -> str | None:
    """Definition 3: as middle, and each element of the output is itself a sync point, that is, the output is ordered.

    Elements with the same sync time count as one arrival; the paper gives them the same CEDR time.
    """
    for output in (data(one), data(two)):
        if not ordered(output):
            return f"output is not ordered: {out_of_order(output)}"
    return middle_violation(one, two)


def middle_violation(one: Stream, two: Stream) -> str | None:
    """Definition 4: at common sync points both outputs are logically equivalent *to* them."""
    return next(_disagreements(one, two, whole=True), None)


def weak_violation(one: Stream, two: Stream) -> str | None:
    """Definition 5: at common sync points both outputs are logically equivalent *at* them."""
    return next(_disagreements(one, two, whole=False), None)


def supports_strong(one: Stream, two: Stream) -> bool:
    return strong_violation(one, two) is None


def supports_middle(one: Stream, two: Stream) -> bool:
    return middle_violation(one, two) is None


def supports_weak(one: Stream, two: Stream) -> bool:
    return weak_violation(one, two) is None


def out_of_order(elements: list[Data]) -> str:
    highest = elements[0]
    for element in elements:
        if element.sync < highest.sync:
            return f"{element} (sync {show(element.sync)}) comes after {highest} (sync {show(highest.sync)})"
        highest = element
    return "nothing"


def _disagreements(one: Stream, two: Stream, *, whole: bool) -> Iterator[str]:
    """Where the outputs differ at common sync points.

    A sync point (t, T) settles every instant up to and including t, which in half-open terms is the history *to*
    t + 1. Two outputs that agree to the end of a common range agree to all of it, so `to` needs one comparison; `at`
    is compared at each instant where the result can change.
    """
    histories_one, histories_two = _prefix_histories(one), _prefix_histories(two)
    for p in sync_points(one):
        for q in sync_points(two):
            common = p.times.intersection(q.times)
            if not common:
                continue
            h1, h2 = histories_one[p.arrived], histories_two[q.arrived]
            for t in [common.end] if whole else _instants(common, h1, h2):
                r1, r2 = (h1.to(t), h2.to(t)) if whole else (h1.at(t), h2.at(t))
                if r1 != r2:
                    relation = "to" if whole else "at"
                    yield (
                        f"after {p.arrived} and {q.arrived} elements, both outputs settled before {show(t)}, but "
                        f"{relation} {show(t)} only the first has\n{r1 - r2}\nand only the second has\n{r2 - r1}"
                    )


def _prefix_histories(stream: Stream) -> list[History]:
    elements = data(stream)
    return [canonical(elements[:i]) for i in range(len(elements) + 1)]


def _instants(common: Interval, *histories: History) -> list[int]:
    """The times of the range at which what is live can have changed."""
    changes = {common.start}.union(*(h.end_points() for h in histories))
    return sorted(t + 1 for t in changes if t in common)
