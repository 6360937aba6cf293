"""What several streams promise in common: of what each promises about parts of it, as much as the others promise."""

from collections.abc import Sequence
from functools import partial

from cedr.columnar.promises import NONE, PromiseIndex, Promises
from cedr.columnar.state import PARTS, Stateful, fields
from cedr.operators.waiting import Waiting


class PromiseIntersection(Stateful):
    """`promised` is what each stream has promised so far; the owner keeps it up to date."""

    state = fields(waiting=PARTS)

    def __init__(self, promised: Sequence[PromiseIndex]) -> None:
        self.promised = promised
        self.waiting = [Waiting() for _ in promised]

    def passed(self, new: Sequence[Promises], ctis: Sequence[int], work: int) -> Promises:
        """What all promise now and did not before, in addition to the earliest CTI.

        `new`: what each has just promised; `work`: the number of rows that came with it.
        """
        passed = NONE
        for stream, waiting in enumerate(self.waiting):
            sure = partial(self._by_all, stream, ctis)
            passed = passed.plus(waiting.passed(new[stream], sure, min(ctis), work))
        return passed

    def _by_all(self, stream: int, ctis: Sequence[int], promises: Promises) -> Promises:
        for other, index in enumerate(self.promised):
            if other != stream:
                promises = index.limit(promises, ctis[other])
        return promises
