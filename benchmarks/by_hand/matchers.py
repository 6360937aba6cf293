"""Pattern matchers as a user would write them: one event after the other, what is waited for in a deque per machine.

They get what no stream gives: every event, in the order of time, no two at the same time. So they never have to wait
for a late event or to take anything back.
"""

from collections import defaultdict, deque
from collections.abc import Iterable

SECOND = 1_000_000
Event = tuple[int, int | str, str, float]
"""Time, machine, type, value."""
Match = tuple[int, int, int | str, float, float]
"""Start, end, machine, and the values of both events."""


def sequence(events: Iterable[Event], w: int = 10 * SECOND) -> list[Match]:
    """SEQUENCE(A x, B y, w)"""
    waiting: defaultdict[int | str, deque[tuple[int, float]]] = defaultdict(deque)
    found = []
    for ts, machine, kind, value in events:
        if kind == "A":
            waiting[machine].append((ts, value))
        elif kind == "B":
            firsts = waiting[machine]
            while firsts and firsts[0][0] + w < ts:
                firsts.popleft()
            for start, first in firsts:
                found.append((ts, max(start + w, ts + 1), machine, first, value))
    return found


def without_between(events: Iterable[Event], w: int = 10 * SECOND) -> list[Match]:
    """NOT(C z, SEQUENCE(A x, B y, w)): a C makes all that waits worthless."""
    waiting: defaultdict[int | str, deque[tuple[int, float]]] = defaultdict(deque)
    found = []
    for ts, machine, kind, value in events:
        if kind == "A":
            waiting[machine].append((ts, value))
        elif kind == "C":
            waiting[machine].clear()
        elif kind == "B":
            firsts = waiting[machine]
            while firsts and firsts[0][0] + w < ts:
                firsts.popleft()
            for start, first in firsts:
                found.append((ts, max(start + w, ts + 1), machine, first, value))
    return found


def not_restarted(events: Iterable[Event], w: int = 12 * SECOND, patience: int = 5 * SECOND) -> list[Match]:
    """UNLESS(SEQUENCE(INSTALL x, SHUTDOWN y, w), RESTART z, patience)"""
    waiting: defaultdict[int | str, deque[tuple[int, float]]] = defaultdict(deque)
    suspects: defaultdict[int | str, deque[Match]] = defaultdict(deque)
    found = []
    for ts, machine, kind, value in events:
        open_cases = suspects[machine]
        while open_cases and open_cases[0][1] <= ts:
            found.append(open_cases.popleft())
        if kind == "INSTALL":
            waiting[machine].append((ts, value))
        elif kind == "RESTART":
            open_cases.clear()
        elif kind == "SHUTDOWN":
            firsts = waiting[machine]
            while firsts and firsts[0][0] + w < ts:
                firsts.popleft()
            for _, first in firsts:
                open_cases.append((ts, ts + patience, machine, first, value))
    for open_cases in suspects.values():
        found.extend(open_cases)
    return found


def each_once(events: Iterable[Event], w: int = 10 * SECOND) -> list[Match]:
    """SEQUENCE(A x FIRST CONSUME, B y, w)"""
    waiting: defaultdict[int | str, deque[tuple[int, float]]] = defaultdict(deque)
    found = []
    for ts, machine, kind, value in events:
        if kind == "A":
            waiting[machine].append((ts, value))
        elif kind == "B":
            firsts = waiting[machine]
            while firsts and firsts[0][0] + w < ts:
                firsts.popleft()
            if firsts:
                start, first = firsts.popleft()
                found.append((ts, max(start + w, ts + 1), machine, first, value))
    return found
