"""Algorithm R4 element by element: no restriction; equal events are counted.

Before CTI t is emitted, the output gets the same number of events of each start and payload before t as the input
(AdjustOutputCount), and the same events that end before t (AdjustOutput). Wrong ends are corrected, the smallest first;
only the remaining surplus is removed and only the remaining gap inserted.

Where the printed algorithm emits the insert that just arrived, this one emits the smallest end that the input has and
the output lacks. That is as early and needs fewer corrections: `insert [0, 1)`, `adjust to 5`, `insert [0, 1)` would
otherwise be emitted as two events that end at 1.
"""

from collections import Counter
from typing import Any

from cedr.temporal.element import Adjust, Cti, Element, Insert
from cedr.temporal.time import INF, MIN

OUT = -1


class ReferenceR4:
    def __init__(self) -> None:
        self.stable = MIN
        self.index: dict[tuple[int, Any], dict[int, Counter[int]]] = {}

    def take(self, port: int, element: Element) -> list[Element]:
        match element:
            case Insert(vs, ve, p):
                return self.insert(port, vs, ve, p)
            case Adjust(vs, ve, ve_new, p):
                if (vs, p) in self.index:
                    ends = self.index[vs, p].setdefault(port, Counter())
                    ends[ve] -= 1
                    if ve_new != vs:
                        ends[ve_new] += 1
            case Cti(t) if t > self.stable:
                return self.freeze(port, t)
        return []

    def insert(self, port: int, vs: int, ve: int, p: Any) -> list[Element]:
        if (vs, p) not in self.index:
            if vs < self.stable:
                return []
            self.index[vs, p] = {OUT: Counter()}
        bags = self.index[vs, p]
        bags.setdefault(port, Counter())[ve] += 1
        if vs < self.stable or bags[port].total() <= bags[OUT].total():
            return []
        end = min(bags[port] - bags[OUT])
        bags[OUT][end] += 1
        return [Insert(vs, end, p)]

    def freeze(self, port: int, t: int) -> list[Element]:
        emitted: list[Element] = []
        for (vs, p), bags in list(self.index.items()):
            if vs >= t:
                continue
            ends = bags.get(port, Counter())
            for old, new in changes(bags[OUT], ends, vs, t):
                emitted.append(Insert(vs, new, p) if old == vs else Adjust(vs, old, new, p))
                bags[OUT] += Counter([new] if new != vs else [])
                bags[OUT] -= Counter([old] if old != vs else [])
            if all(end < t or t == INF for end in +ends):
                del self.index[vs, p]
        self.stable = t
        return [*emitted, Cti(t)]


def changes(out: Counter[int], expected: Counter[int], vs: int, t: int) -> list[tuple[int, int]]:
    """How ends of the output change so that CTI t is allowed; an end at `vs` means that the event does not exist."""
    wrong, right = sorted((out - expected).elements()), sorted((expected - out).elements())
    wrong, right = [vs] * (len(right) - len(wrong)) + wrong, [vs] * (len(wrong) - len(right)) + right
    return [(a, b) for a, b in zip(wrong, right, strict=True) if min(a, b) < t or t == INF]
