"""Python with state per key, for what Bytewax has no operator: events are held until the clock has passed them."""

from abc import abstractmethod
from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any

from bytewax.operators import StatefulBatchLogic
from peers.parameters import APART, DELAY, HIGH, LOW, SCOPE, SLIDING

SECOND = 1_000_000
Event = tuple[int, int, float]
"""Its time, its side in a join, its value."""
Found = tuple[Any, ...]


class InOrder(StatefulBatchLogic[Event, Found, None]):
    """Events of a key, put in order; `take` gets those of one time together. Of two sides the slower one counts."""

    SIDES = 1

    def __init__(self, resume_state: None) -> None:
        self.held: list[Event] = []
        self.latest = [0] * self.SIDES

    def on_batch(self, values: list[Event]) -> tuple[Iterable[Found], bool]:
        for event in values:
            heappush(self.held, event)
            self.latest[event[1]] = max(self.latest[event[1]], event[0])
        return self.until(min(self.latest) - DELAY * SECOND), StatefulBatchLogic.RETAIN

    def on_eof(self) -> tuple[Iterable[Found], bool]:
        return self.until(max(self.latest)), StatefulBatchLogic.RETAIN

    def until(self, watermark: int) -> list[Found]:
        found: list[Found] = []
        while self.held and self.held[0][0] <= watermark:
            now = [heappop(self.held)]
            while self.held and self.held[0][0] == now[0][0]:
                now.append(heappop(self.held))
            found += self.take(now[0][0], now)
        return found

    @abstractmethod
    def take(self, now: int, events: list[Event]) -> Iterable[Found]: ...

    def snapshot(self) -> None:
        return None


class Slid(InOrder):
    """The sum over the last seconds, at each event."""

    def __init__(self, resume_state: None) -> None:
        super().__init__(resume_state)
        self.window: deque[tuple[int, float]] = deque()
        self.total = 0.0

    def take(self, now: int, events: list[Event]) -> Iterable[Found]:
        for _, _, value in events:
            self.window.append((now, value))
            self.total += value
        while self.window[0][0] + SLIDING * SECOND <= now:
            self.total -= self.window.popleft()[1]
        return [(now, self.total)]

    @staticmethod
    def row(key: int, found: Found) -> Found:
        return found[0], key, found[1]


class Joined(InOrder):
    """Pairs of both sides that are less than some time apart."""

    SIDES = 2

    def __init__(self, resume_state: None) -> None:
        super().__init__(resume_state)
        self.sides: tuple[deque[Event], deque[Event]] = (deque(), deque())

    def take(self, now: int, events: list[Event]) -> Iterable[Found]:
        for side in self.sides:
            while side and side[0][0] + APART * 1000 <= now:
                side.popleft()
        for event in events:
            for other in self.sides[1 - event[1]]:
                left, right = (event, other) if event[1] == 0 else (other, event)
                yield now, other[0] + APART * 1000, left[2], right[2]
            self.sides[event[1]].append(event)

    @staticmethod
    def row(key: int, found: Found) -> Found:
        return found[0], found[1], key, found[2], found[3]


class Matched(InOrder):
    """A low value, then one in the middle, without a high one between."""

    def __init__(self, resume_state: None) -> None:
        super().__init__(resume_state)
        self.waiting: deque[Event] = deque()

    def take(self, now: int, events: list[Event]) -> Iterable[Found]:
        while self.waiting and self.waiting[0][0] + SCOPE * SECOND < now:
            self.waiting.popleft()
        for _, _, value in events:
            if LOW <= value < HIGH:
                for start, _, first in self.waiting:
                    yield now, max(start + SCOPE * SECOND, now + 1), first, value
        if any(value >= HIGH for _, _, value in events):
            self.waiting.clear()
        self.waiting.extend(event for event in events if event[2] < LOW)

    row = Joined.row
