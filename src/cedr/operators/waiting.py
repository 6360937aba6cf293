"""Promises on their way through an operator: what can be passed on now, and what has to wait.

What an input promised holds for the output only as far as the operator's state lets it: something that matches may
still be held, or another input has not promised as much. Such a promise waits and is tried again. With many that wait
this happens only when as much other work was done since, so that a promise may come late and the cost stays in
proportion to the input.
"""

from collections.abc import Callable

from cedr.columnar.promises import NONE, PromiseIndex, Promises
from cedr.columnar.state import NUMBER, PART, Stateful, fields

FEW = 1000
"""Maximum number of waiting promises that are tried again with each chunk."""


class Waiting(Stateful):
    state = fields(_open=PART, _passed=PART, _work=NUMBER)

    def __init__(self) -> None:
        self._open = PromiseIndex()
        """What was promised and is not passed on completely."""
        self._passed = PromiseIndex()
        """What was passed on of it."""
        self._work = 0

    def passed(self, new: Promises, sure: Callable[[Promises], Promises], cti: int, work: int) -> Promises:
        """What can be promised now and was not before, in addition to the output's CTI.

        `sure` limits promises to what holds for the output; `work` is the number of rows of the chunk.
        """
        if not len(new) and not self._open:
            return NONE
        before = PromiseIndex()
        self._work += 1 + work + len(new)
        if len(self._open) <= FEW + self._work:
            new = self._open.all().plus(new)
            self._open, self._passed, before = PromiseIndex(), PromiseIndex(), self._passed
            self._work = 0
        new = new.after(cti)
        now = sure(new).after(cti)
        self._open.add(new.beyond(now), cti)
        if self._open:
            self._passed.add(now, cti)
        return before.beyond(now)
