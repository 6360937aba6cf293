"""When a merge emits (LMerge, III-D and V-A): how early events, how early progress.

    emits           an event is emitted
    first           as soon as one input has it; its end is repaired only when a CTI makes that necessary
    reflect         likewise, and every change of any input is passed on
    leader          as the leading input has it, the one whose CTI is the highest, all of its changes included
    fraction        as soon as that share of the inputs has it
    half-frozen     when a CTI has made sure that it exists; nothing emitted is ever removed

    progress        the CTI of the output
    fastest         the highest of all inputs, less `lag`: the least memory
    slowest         the lowest of all inputs, less `lag`: the fewest changes

Every choice keeps the output compatible. The earlier it emits, the more it retracts.
"""

import math
import warnings
from dataclasses import dataclass
from typing import Literal, get_args

from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, MIN, as_time

Emits = Literal["first", "reflect", "leader", "fraction", "half-frozen"]
Progress = Literal["fastest", "slowest"]
Wrong = Literal["raise", "detach"]


RENAMED = "Policy: tells is now emits; the old name will be removed in the next version"


@dataclass(frozen=True, init=False)
class Policy:
    """When a merge emits an event, and which inputs determine its progress; see docs/merge.md.

    `tells` is the former name of `emits`; it is deprecated.
    """

    emits: Emits
    fraction: float
    progress: Progress
    lag: int

    def __init__(
        self,
        emits: Emits = "first",
        fraction: float = 1.0,
        progress: Progress = "fastest",
        lag: int = 0,
        *,
        tells: Emits | None = None,
    ) -> None:
        if tells is not None:
            warnings.warn(RENAMED, DeprecationWarning, stacklevel=2)
            emits = tells
        for name, value in (("emits", emits), ("fraction", fraction), ("progress", progress), ("lag", lag)):
            object.__setattr__(self, name, value)
        self._check()

    @property
    def tells(self) -> Emits:
        warnings.warn(RENAMED, DeprecationWarning, stacklevel=2)
        return self.emits

    def _check(self) -> None:
        for name, value, allowed in (("emits", self.emits, Emits), ("progress", self.progress, Progress)):
            if value not in get_args(allowed):
                raise QueryError(f"policy: {name} is {value!r}; it is one of {', '.join(map(repr, get_args(allowed)))}")
        if not 0 < self.fraction <= 1:
            raise QueryError(f"policy: fraction is {self.fraction}; it is a share of the inputs, above 0 and up to 1")
        if not 0 <= as_time(self.lag, "lag of the policy") < INF:
            raise QueryError(f"policy: lag is {self.lag}; it is a length of time, 0 or more, but not INF")

    def needed(self, inputs: int) -> int:
        """The number of inputs that must have an event before it is emitted."""
        return max(1, math.ceil(self.fraction * inputs)) if self.emits == "fraction" else 1

    def behind(self, t: int) -> int:
        """The CTI of the output when the inputs allow t."""
        return t if t in (INF, MIN) else max(t - self.lag, MIN)

    def __str__(self) -> str:
        emits = f"{self.fraction:g} of the inputs" if self.emits == "fraction" else self.emits
        return ", ".join([emits, self.progress, *([f"lag {self.lag}"] if self.lag else [])])


def as_policy(given: "Policy | str") -> Policy:
    """A policy, or the name of one."""
    return given if isinstance(given, Policy) else Policy(given)  # type: ignore[arg-type]  # checked there
