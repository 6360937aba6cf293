"""Mutual consistency (LMerge, III-B): prefixes of streams that may still have one common history.

    mutually consistent    there is a history that every prefix can be extended to
    compatible             whatever history all the inputs can still be extended to, so can the output

Both are defined by `can_become`: whether a prefix can be continued to that history without breaking its CTI.
"""

from collections.abc import Sequence

from cedr.temporal.element import Adjust, Data, Element, Insert
from cedr.temporal.history import Event, History
from cedr.temporal.stream import canonical, closed_up_to, violations


def repair(found: History, expected: History) -> list[Data]:
    """Elements that turn one history into another: ends change where possible, else events are removed and inserted."""
    elements: list[Data] = []
    missing, surplus = by_key(expected - found), by_key(found - expected)
    for vs, p in [*surplus, *(key for key in missing if key not in surplus)]:
        wrong, right = surplus.get((vs, p), []), missing.get((vs, p), [])
        pairs = min(len(wrong), len(right))
        elements += [Adjust(vs, a.ve, b.ve, p) for a, b in zip(wrong[:pairs], right[:pairs], strict=True)]
        elements += [Adjust(vs, e.ve, vs, p) for e in wrong[pairs:]]
        elements += [Insert(vs, e.ve, p) for e in right[pairs:]]
    return elements


def by_key(history: History) -> dict[tuple[int, object], list[Event]]:
    """The events by start and payload, in order of their ends."""
    found: dict[tuple[int, object], list[Event]] = {}
    for e in sorted(history, key=lambda e: e.ve):
        found.setdefault((e.vs, e.payload), []).append(e)
    return found


def can_become(prefix: Sequence[Element], history: History) -> bool:
    """Whether a valid extension of the stream has this history.

    Which wrong end becomes which right one does not matter: an end before the CTI cannot change at all, any other can
    become any end that is not before it.
    """
    return not violations([*prefix, *repair(canonical(prefix), history)])


def mutually_consistent(prefixes: Sequence[Sequence[Element]]) -> bool:
    """Whether all these prefixes can be extended to one history.

    The prefix with the highest CTI decides: if there is such a history, it is the one with exactly the events that this
    CTI has half or fully frozen, as all other events may still be retracted.
    """
    leader = max(prefixes, key=closed_up_to, default=[])
    history = History(e for e in canonical(leader) if e.vs < closed_up_to(leader))
    return all(can_become(prefix, history) for prefix in prefixes)
