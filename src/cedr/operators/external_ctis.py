"""External CTIs: the progress of a stream, declared as counts.

`external_cti(vs, ve, n)` declares that n elements have their sync time in `[vs, ve)`. It closes its span as soon as n
have come, whichever of them comes last. Spans may come in any order and must not overlap. The promise they make
together reaches as far as closed spans follow each other without a gap.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cedr.columnar.chunk import Times
from cedr.columnar.state import ARRAY_PIECES, Stateful, columns, each, fields
from cedr.temporal.element import ExternalCti
from cedr.temporal.time import INF, MIN

MANY_PIECES = 64


@dataclass(frozen=True)
class PromisedCount:
    """A promised count and how many came; elements that came before a CTI passed them by are not known any more."""

    vs: int
    ve: int
    n: int
    received: int

    @property
    def cti(self) -> ExternalCti:
        return ExternalCti(self.vs, self.ve, self.n)

    @property
    def closed(self) -> bool:
        return self.received >= self.n


class ExternalCtis(Stateful):
    """Spans in order, and the sync times that may lie in spans yet to come.

    `origin` is where the spans begin. Without one, they begin at the lowest start or sync time known so far; a first
    span that is overtaken by a later one then comes too late, if none of its elements came before.
    """

    state = fields(spans=each(columns(PromisedCount)), _syncs=ARRAY_PIECES)

    def __init__(self, origin: int | None = None, spans: Iterable[PromisedCount] = ()) -> None:
        self.origin = origin
        self.spans = list(spans)
        self._syncs: list[Times] = []

    def __len__(self) -> int:
        return sum(map(len, self._syncs))

    def copy(self) -> "ExternalCtis":
        twin = ExternalCtis(self.origin, self.spans)
        twin._syncs = list(self._syncs)
        return twin

    def _places(self, sync: Times) -> Times:
        """The span each sync time lies in, -1 for none."""
        starts = np.array([s.vs for s in self.spans], dtype=np.int64)
        ends = np.array([s.ve for s in self.spans], dtype=np.int64)
        place = np.searchsorted(starts, sync, side="right") - 1
        return np.where((place >= 0) & (sync < ends[place]), place, -1)

    def excess(self, sync: Times, positions: Times) -> list[tuple[ExternalCti, Times]]:
        """For each span that gets more than it promised, the positions of those too many."""
        if not self.spans:
            return []
        place = self._places(sync)
        counts = np.bincount(place[place >= 0], minlength=len(self.spans))
        room = [s.n - s.received for s in self.spans]
        full = [i for i in np.flatnonzero(counts) if counts[i] > room[i]]
        return [(self.spans[i].cti, positions[place == i][room[i] :]) for i in full]

    def receive(self, sync: Times) -> None:
        """Count elements; `excess` ones must not be among them."""
        if not len(sync):
            return
        self._syncs.append(sync)
        if len(self._syncs) > MANY_PIECES:
            self._syncs = [np.concatenate(self._syncs)]
        if self.spans:
            place = self._places(sync)
            counts = np.bincount(place[place >= 0], minlength=len(self.spans))
            self.spans = [replace(s, received=s.received + int(c)) for s, c in zip(self.spans, counts, strict=True)]

    def broken(self, new: ExternalCti) -> tuple[Any, str] | None:
        """Why a new external CTI cannot be right, as a reason and a sentence."""
        for span in self.spans:
            if span.cti.span.overlaps(new.span):
                return "overlap", f"it overlaps {span.cti}; spans of external CTIs must not share an instant"
        if (received := self._received(new)) > new.n:
            came = f"{received} came already"
            return "count_exceeded", f"it promises {new.n} elements with a sync time in {new.span}, but {came}"
        return None

    def add(self, new: ExternalCti) -> None:
        self.spans = sorted(
            [*self.spans, PromisedCount(new.vs, new.ve, new.n, self._received(new))], key=lambda s: s.vs
        )

    def _received(self, external: ExternalCti) -> int:
        return sum(int(np.count_nonzero((s >= external.vs) & (s < external.ve))) for s in self._syncs)

    def promise(self, known: int) -> int:
        """The CTI that follows, given that nothing before `known` will come."""
        reached = max(known, MIN if self.origin is None else self.origin)
        if reached == MIN and self.spans:
            reached = min([self.spans[0].vs, *(int(s.min()) for s in self._syncs)])
        before = reached
        for span in self.spans:
            if span.vs <= reached < span.ve and span.closed:
                reached = span.ve
        return reached if reached > before else known

    def forget(self, before: int) -> None:
        """Drop what lies before a CTI."""
        self.spans = [s for s in self.spans if s.ve > before]
        if before == INF:
            self._syncs = []
        elif self._syncs:
            rest = (s if s.min() >= before else s[s >= before] for s in self._syncs)
            self._syncs = [s for s in rest if len(s)]
