"""Top-k: the first k events of each snapshot of each group in some order.

Missing values come last, whether descending or not; NaN is greater than any number. Ties are broken by payload, so the
result never depends on arrival. With `rank`, rows get their rank. Like any result per snapshot, a row is cut where
another begins or ends, even if its own rank stays the same; `coalesce` joins adjacent pieces.
"""

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from cedr.reference.snapshot import snapshot
from cedr.temporal import Event, History, QueryError
from cedr.temporal.row import order_key


def top_k(
    history: History,
    k: int,
    order: Callable[[Any], Any] | Sequence[str],
    by: Callable[[Any], Any] = lambda p: None,
    descending: bool = True,
    rank: str | None = None,
) -> History:
    if k < 1:
        raise QueryError(f"top_k with k={k}: k must be at least 1")

    keys = [order] if callable(order) else [itemgetter(name) for name in order]

    def best(events: list[Event]) -> Iterator[Any]:
        payloads = sorted((e.payload for e in events), key=order_key)
        for key in reversed(keys):
            present = [p for p in payloads if key(p) is not None]
            present.sort(key=lambda p: order_key(key(p)), reverse=descending)
            payloads = [*present, *(p for p in payloads if key(p) is None)]
        for place, p in enumerate(payloads[:k], start=1):
            yield p.replace(**{rank: place}) if rank else p

    return snapshot(history, best, by)
