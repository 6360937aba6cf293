"""Union: all events of both sides, copies counted."""

from cedr.temporal import History


def union(left: History, right: History) -> History:
    return left + right
