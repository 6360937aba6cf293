"""Algorithm R3 as printed, element by element: start and payload are a key, everything else is allowed.

An event that an input does not have, or has removed, has its start as its end, as in line 20 of the printed algorithm.
At the CTI of infinity everything is fully frozen, as no element can follow.
"""

from typing import Any

from cedr.temporal.element import Adjust, Cti, Element, Insert
from cedr.temporal.time import INF, MIN

OUT = -1
"""The port number of the output's own end among those of the inputs."""


class ReferenceR3:
    def __init__(self) -> None:
        self.stable = MIN
        self.index: dict[tuple[int, Any], dict[int, int]] = {}

    def take(self, port: int, element: Element) -> list[Element]:
        match element:
            case Insert(vs, ve, p):
                return self.insert(port, vs, ve, p)
            case Adjust(vs, _, ve_new, p):
                if (vs, p) in self.index:
                    self.index[vs, p][port] = ve_new
            case Cti(t) if t > self.stable:
                return self.freeze(port, t)
        return []

    def insert(self, port: int, vs: int, ve: int, p: Any) -> list[Element]:
        new = (vs, p) not in self.index
        if new and vs < self.stable:
            return []
        self.index.setdefault((vs, p), {OUT: ve})[port] = ve
        return [Insert(vs, ve, p)] if new else []

    def freeze(self, port: int, t: int) -> list[Element]:
        emitted: list[Element] = []
        for (vs, p), ends in list(self.index.items()):
            if vs >= t:
                continue
            ve, out = ends.get(port, vs), ends[OUT]
            final = ve < t or t == INF
            if ve != out and (final or out < t):
                emitted.append(Adjust(vs, out, ve, p) if out != vs else Insert(vs, ve, p))
                ends[OUT] = ve
            if final:
                del self.index[vs, p]
        self.stable = t
        return [*emitted, Cti(t)]
