"""Top-k: of each snapshot of each group the k events that come first in an order.

Ties are broken by payload, so the answer never depends on arrival. With `rank`, the row says which place it took.
"""

from collections.abc import Callable, Iterator
from typing import Any

from cedr.reference.snapshot import snapshot
from cedr.temporal import Event, History, QueryError
from cedr.temporal.row import order_key


def top_k(
    history: History,
    k: int,
    order: Callable[[Any], Any],
    by: Callable[[Any], Any] = lambda p: None,
    descending: bool = True,
    rank: str | None = None,
) -> History:
    if k < 1:
        raise QueryError(f"top_k with k={k}: k must be at least 1")

    def best(events: list[Event]) -> Iterator[Any]:
        payloads = sorted((e.payload for e in events), key=order_key)
        payloads.sort(key=lambda p: order_key(order(p)), reverse=descending)
        for place, p in enumerate(payloads[:k], start=1):
            yield p.replace(**{rank: place}) if rank else p

    return snapshot(history, best, by)
