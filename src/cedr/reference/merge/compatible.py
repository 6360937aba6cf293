"""Conditions C1, C2 and C3 (LMerge, III-D): whether the output of a merge can still become the history of its inputs.

L is the CTI of the output, L_m that of input m. Of the events with one start Vs and payload, a CTI t > Vs settles how
many there are, and those that end before t (*fully frozen*); the others (*half frozen*) end at t or later.

    C1   L is not greater than the largest L_m
    C2   what is frozen in the output is frozen in the inputs: the output has no surplus event that it cannot retract
    C3   what is frozen in the inputs, up to L, is in the output: the output lacks no event that it can no longer insert

The inputs are mutually consistent, so the one with the largest L_m decides. The paper prints C2 with `L_m <= L` for
half frozen events. An input that can still change an end at L_m < L shows that `L <= L_m` is meant.

In the *set* case start and payload are a key, and the output may not have two events of one key at all.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from cedr.temporal.element import Element
from cedr.temporal.history import Event
from cedr.temporal.stream import canonical, closed_up_to
from cedr.temporal.time import INF, show


@dataclass(frozen=True)
class Violation:
    condition: Literal["C1", "C2", "C3"]
    events: tuple[Event, ...]
    reason: str

    def __str__(self) -> str:
        return f"{self.condition}: {self.reason} {', '.join(map(str, self.events))}".rstrip()


def compatible(
    inputs: Sequence[Sequence[Element]], output: Sequence[Element], *, multiset: bool = False
) -> list[Violation]:
    """The violations of the output so far, given the mutually consistent inputs so far; empty when compatible."""
    leader = max(inputs, key=closed_up_to, default=[])
    stable, leading = closed_up_to(output), closed_up_to(leader)
    found: list[Violation] = []
    if stable > leading:
        found.append(Violation("C1", (), f"the output promised {show(stable)}, no input more than {show(leading)}"))
    emitted, true = by_key(canonical(output)), by_key(e for e in canonical(leader) if e.vs < leading)
    for key in {**emitted, **true}:
        out, into = emitted.get(key, []), true.get(key, [])
        if not multiset and len(out) > 1:
            found.append(Violation("C2", tuple(out), "start and payload are a key, but the output has"))
        if key[0] < stable:
            found += frozen(out, into, stable)
    return found


def by_key(events: Iterable[Event]) -> dict[tuple[int, object], list[Event]]:
    found: dict[tuple[int, object], list[Event]] = {}
    for e in events:
        found.setdefault((e.vs, e.payload), []).append(e)
    return found


def frozen(out: list[Event], into: list[Event], stable: int) -> list[Violation]:
    """C2 and C3 for the events of one start and payload, a start that the output's CTI has passed."""
    fully_out, fully_in = Counter(full(out, stable)), Counter(full(into, stable))
    half_out, half_in = half(out, stable), half(into, stable)
    found: list[Violation] = []
    if wrong := tuple((fully_out - fully_in).elements()):
        found.append(Violation("C2", wrong, "no input supports what the output has fully frozen:"))
    if missing := tuple((fully_in - fully_out).elements()):
        found.append(Violation("C3", missing, "fully frozen in an input, too late to be emitted:"))
    if len(half_out) > len(half_in):
        found.append(Violation("C2", tuple(half_out), f"{len(half_in)} half frozen in the inputs, in the output"))
    if len(half_out) < len(half_in):
        found.append(Violation("C3", tuple(half_in), f"{len(half_out)} half frozen in the output, in an input"))
    return found


def full(events: list[Event], stable: int) -> list[Event]:
    return [e for e in events if e.ve < stable or stable == INF]


def half(events: list[Event], stable: int) -> list[Event]:
    return [e for e in events if e.ve >= stable and stable != INF]
