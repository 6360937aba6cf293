"""The W query written by hand: a loop over ticks in the order of time, with the runs that are open."""

from collections.abc import Iterable

NEXT = {("U", "D"): "D", ("D", "D"): "D", ("D", "U"): "DU", ("DU", "U"): "DU", ("DU", "D"): "DUD", ("DUD", "D"): "DUD"}
"""Where a tick leads before the last rise."""


def w_shapes(ticks: Iterable[tuple[int, str]], window: int) -> list[tuple[int, int, int, int]]:
    """Start and end of the lifetime, begin and end of every W within a window."""
    found = []
    runs: list[tuple[int, str, int]] = []
    for at, tick in ticks:
        going = []
        step = 1 if tick == "D" else -1
        for begin, state, m in runs:
            if begin + window <= at:
                continue
            target = NEXT.get((state, tick))
            if target is not None:
                going.append((begin, target, m + step))
            elif tick == "U" and m > 1:
                going.append((begin, "DUDU", m - 1))
            elif tick == "U" and m == 1 and state in ("DUD", "DUDU"):
                found.append((at, begin + window, begin, at))
        if tick == "U":
            going.append((at, "U", 0))
        runs = going
    return found
