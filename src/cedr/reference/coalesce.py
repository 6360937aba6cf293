"""Coalesce: the same table at every instant, in the fewest and longest events."""

from cedr.temporal import History


def coalesce(history: History) -> History:
    return history.coalesce()
