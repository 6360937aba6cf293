"""What several streams promise in common: of what each says about parts of it, as much as the others say, too."""

from collections.abc import Sequence
from functools import partial

from cedr.columnar.promises import NONE, PromiseIndex, Promises
from cedr.operators.base import State
from cedr.operators.waiting import Waiting


class PromiseIntersection:
    """`known` is what each stream has promised so far; the owner keeps it up to date."""

    def __init__(self, known: Sequence[PromiseIndex]) -> None:
        self.known = known
        self.waiting = [Waiting() for _ in known]

    def passed(self, new: Sequence[Promises], ctis: Sequence[int], work: int) -> Promises:
        """What all promise now and did not before, beside the earliest CTI.

        `new`: what each has just promised; `work`: the number of rows that came with it.
        """
        passed = NONE
        for stream, waiting in enumerate(self.waiting):
            sure = partial(self._by_all, stream, ctis)
            passed = passed.plus(waiting.passed(new[stream], sure, min(ctis), work))
        return passed

    def _by_all(self, stream: int, ctis: Sequence[int], said: Promises) -> Promises:
        for other, known in enumerate(self.known):
            if other != stream:
                said = known.limit(said, ctis[other])
        return said

    def save(self) -> State:
        return {"common": [waiting.save() for waiting in self.waiting]}

    def load(self, state: State) -> None:
        for waiting, saved in zip(self.waiting, state["common"], strict=True):
            waiting.load(saved)
