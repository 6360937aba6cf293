"""Promises on their way through an operator: what can be passed on now, and what has to wait.

What an input promised holds for the output only as far as the operator's state lets it: something that matches may
still be held, or another input has not promised as much. Such a promise waits and is tried again. With many that wait
this happens only when as much other work was done since, so that a promise may come late and the cost stays in
proportion to the input.
"""

from collections.abc import Callable

from cedr.columnar.promises import NONE, PromiseIndex, Promises
from cedr.operators.base import State

FEW = 1000
"""So many promises that wait are tried again with each chunk."""


class Waiting:
    def __init__(self) -> None:
        self._said = PromiseIndex()
        """What was promised and is not passed on in full."""
        self._told = PromiseIndex()
        """What was passed on of it."""
        self._work = 0

    def passed(self, new: Promises, sure: Callable[[Promises], Promises], cti: int, work: int) -> Promises:
        """What can be promised now and was not before, beside the output's CTI.

        `sure` says of promises how far they hold for the output; `work` is the number of rows of the chunk.
        """
        if not len(new) and not self._said:
            return NONE
        told = PromiseIndex()
        self._work += 1 + work + len(new)
        if len(self._said) <= FEW + self._work:
            new = self._said.all().plus(new)
            self._said, self._told, told = PromiseIndex(), PromiseIndex(), self._told
            self._work = 0
        new = new.after(cti)
        now = sure(new).after(cti)
        self._said.add(new.beyond(now), cti)
        if self._said:
            self._told.add(now, cti)
        return told.beyond(now)

    @property
    def nbytes(self) -> int:
        return self._said.nbytes + self._told.nbytes

    def save(self) -> State:
        return {"said": self._said.save(), "told": self._told.save(), "work": self._work}

    def load(self, state: State) -> None:
        self._said.load(state["said"])
        self._told.load(state["told"])
        self._work = state["work"]
