"""Flying Fixed-Point: how far a loop has come, found by speculation while rows go on circulating (FFP, 3.4, 3.5, 5.3).

A CTI of the inputs does not hold for the loop yet: rows from before it may still circulate. So a *speculative*
punctuation goes round behind them. When it is back and nothing came before it that lies below it, it was right, and
becomes a *definite* one: it is emitted, and lets the operators of the loop forget.

    High-Water-Mark   speculates on the latest time seen; waits at the inputs until they have come so far ("lodges")
    Probing           speculates on the end of time, and lets the inputs lower it to what they have reached; always
    Hybrid            like Probing, but only when the inputs have come further than what is definite

Times are CTIs: `t` covers everything before t.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from cedr.columnar.state import FLAG, NUMBER, Stateful, fields
from cedr.temporal.time import INF, MIN


@dataclass
class FlyingFixedPoint(Stateful, ABC):
    """One speculative punctuation at most is on its way at any time."""

    definite: int = MIN
    """The latest definite punctuation."""
    external: int = MIN
    """The external progress: what all inputs from outside have promised."""
    flying: bool = False
    """Whether a speculative punctuation is on its way."""
    earliest: int = INF
    """The earliest time of what came since it left."""
    speculative_punctuations: int = 0
    definite_punctuations: int = 0

    state = fields(
        definite=NUMBER,
        external=NUMBER,
        flying=FLAG,
        earliest=NUMBER,
        speculative_punctuations=NUMBER,
        definite_punctuations=NUMBER,
    )

    def see(self, first: int, last: int) -> None:
        """Rows with these times have reached the end of the loop."""
        self.earliest = min(self.earliest, first)

    def leave(self) -> None:
        """Send a speculative punctuation after what circulates, if there is reason to and none is on its way."""
        if not self.flying and self.speculates():
            self.flying, self.earliest = True, INF
            self.speculative_punctuations += 1

    @abstractmethod
    def speculates(self) -> bool:
        """Whether there is reason to."""

    @property
    @abstractmethod
    def lodged(self) -> bool:
        """Whether the speculative punctuation waits for an input."""

    @abstractmethod
    def proven(self) -> int:
        """What is definite when the speculative punctuation is back."""

    def back(self) -> bool:
        """The speculative punctuation is back, if one can be; whether more is definite now."""
        if not self.flying or self.lodged:
            return False
        self.flying = False
        return self.reach(self.proven())

    def reach(self, t: int) -> bool:
        """Whether this is news."""
        if t <= self.definite:
            return False
        self.definite = t
        self.definite_punctuations += 1
        return True


@dataclass
class HighWaterMark(FlyingFixedPoint):
    mark: int = MIN
    """The latest time seen."""
    speculation: int = MIN

    state = fields(mark=NUMBER, speculation=NUMBER)

    def see(self, first: int, last: int) -> None:
        super().see(first, last)
        self.mark = max(self.mark, last)

    def speculates(self) -> bool:
        """A speculation that did not hold goes round once more; else there must be a higher mark."""
        if self.speculation <= self.definite:
            self.speculation = self.mark
        return self.speculation > self.definite

    @property
    def lodged(self) -> bool:
        return self.external < self.speculation

    def proven(self) -> int:
        return self.speculation if self.earliest >= self.speculation else MIN


@dataclass
class Probing(FlyingFixedPoint):
    def speculates(self) -> bool:
        return True

    @property
    def lodged(self) -> bool:
        return False

    def proven(self) -> int:
        return min(self.external, self.earliest)


@dataclass
class Hybrid(Probing):
    def speculates(self) -> bool:
        """External progress is passed to the operator as it happens: the events `ep(t)` of the paper."""
        return self.external > self.definite


METHODS: dict[str, type[FlyingFixedPoint]] = {"hybrid": Hybrid, "hwm": HighWaterMark, "probing": Probing}
