"""Feedback: a merge reports to the operators that feed it which rows it no longer needs.

It runs against the direction of the data. When one input of a merge is ahead, rows of the others with both ends before
a time t have no use any more. `skip_before(operator, t)` makes an operator leave them out of its output from then on.
That output is then not a complete stream: an adjust may name a tuple that was left out. A merge accepts that, and so do
operators that neither store rows nor look at times; those pass the feedback on to their own inputs (`PassesFeedback`).

A Finalize that keeps no tuples passes it on, too. Rows before it are not yet *judged*: those that it would put aside as
late must arrive, useless or not, as nothing is dropped silently. So before a Finalize only inserts are left out that
keep all that was promised.

The engine asks each `GivesFeedback` after every chunk and attaches a `Skipping` to the operators that the answer
reaches; the others have none. It is not part of their state, as no result depends on it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from cedr.columnar.chunk import TIMES, Chunk, Times
from cedr.columnar.promises import PromiseIndex
from cedr.operators.base import Mask, Operator
from cedr.temporal.time import MIN


class GivesFeedback(ABC):
    """An operator that knows which rows of its inputs are no longer needed: a merge."""

    @abstractmethod
    def feedback(self) -> int:
        """Rows of the inputs with both ends before this time are no longer needed; MIN if unknown."""


class PassesFeedback:
    """An operator whose inputs, too, may leave out what its output may leave out."""

    same_times = True
    """Rows leave with the times they came with, and none does because of another: what may be skipped need not come."""

    judges = False
    """Rows that break a promise are put aside here, so that none of what leaves does."""

    @property
    def passes_feedback(self) -> bool:
        return self.same_times


@dataclass
class Skipping:
    """Rows with both ends before `before` may be left out of an operator's output, and of its input if `input`.

    `judged`: such rows have passed a Finalize, as far as the caller of `skip_before` knows.
    """

    before: int
    judged: bool
    input: bool

    def useful_rows(self, chunk: Chunk, promised: Iterable[PromiseIndex], cti: int) -> Chunk:
        """The chunk without what may be skipped; `cti` and `promised` are the promises before it."""
        if not self.may_skip(chunk, promised):
            return chunk
        useful = self.useful(chunk.vs, chunk.old, chunk.new, cti)
        return chunk if useful.all() else replace(chunk, rows=chunk.rows.filter(pl.Series(useful)))

    def may_skip(self, chunk: Chunk, promised: Iterable[PromiseIndex]) -> bool:
        """With punctuations or missing times a Finalize has to see all rows."""
        if not len(chunk):
            return False
        return self.judged or not (any(promised) or any(chunk.rows[name].null_count() for name in TIMES))

    def useful(self, vs: Times, old: Times, new: Times, cti: int) -> Mask:
        """Rows without both ends before the time, and those that a Finalize has yet to put aside."""
        if self.judged:
            return np.maximum(old, new) >= self.before
        return (new >= self.before) | (old != vs) | (new <= vs) | (vs < cti)


def skip_before(operator: Operator, t: int, judged: bool = True) -> int:
    """Make an operator leave out rows with both ends before t; returns the time to pass on to its inputs, MIN for none.

    `judged`: the output comes from a Finalize, and does not go to one.
    """
    if t == MIN:
        return MIN
    before = t if operator.skipping is None else max(operator.skipping.before, t)
    passing = operator if isinstance(operator, PassesFeedback) else None
    operator.skipping = Skipping(before, judged, passing is not None and passing.same_times)
    return before if passing is not None and passing.passes_feedback else MIN


def judged_below(operator: Operator, judged: bool) -> bool:
    """Whether the rows that enter an operator have passed a Finalize, if those that leave it have by `judged`."""
    return judged and not (isinstance(operator, PassesFeedback) and operator.judges)
