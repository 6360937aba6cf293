"""PromiseIndex: all promises so far, collected as they arrive."""

from collections.abc import Iterable
from functools import partial, reduce
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.promises.promises import NONE, Promises
from cedr.columnar.promises.steps import NO_STEPS, Steps, pointwise
from cedr.columnar.times import Times
from cedr.temporal.errors import StateError
from cedr.temporal.time import MIN

SMALL = 1_000
"""Maximum size of sets that are always merged: merging them is cheaper than looking up each."""


class PromiseIndex:
    """All promises so far. A set is merged with the next one if it is small, or not much larger than the next."""

    def __init__(self) -> None:
        self._parts: list[Promises] = []

    def add(self, promises: Promises, cti: int = MIN) -> None:
        if not len(promises):
            return
        self._parts.append(promises)
        while len(self._parts) > 1 and len(self._parts[-2]) <= max(SMALL, 4 * len(self._parts[-1])):
            self._parts[-2:] = [self._parts[-2].plus(self._parts[-1]).after(cti)]

    def __bool__(self) -> bool:
        return any(map(len, self._parts))

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @property
    def nbytes(self) -> int:
        return sum([part.nbytes for part in self._parts]) if self._parts else 0  # asked after each chunk

    def of(self, rows: pl.DataFrame) -> Times:
        """The time promised for each row, as `Promises.of`."""
        found = np.full(rows.height, MIN, dtype=np.int64)
        for part in self._parts:
            np.maximum(found, part.of(rows), out=found)
        return found

    def limit(self, promises: Promises, cti: int) -> Promises:
        """The part of `promises` that holds here too, given a CTI: for each payload the earlier time."""
        both = promises.limited(self.of, self._steps(promises.steps), cti)
        for part in self._parts:
            more = part.about_more(promises)
            if len(more):
                both = both.plus(promises.combined(MIN, more, cti))
        return both

    def _steps(self, names: Iterable[str]) -> dict[str, Steps]:
        later = partial(pointwise, np.maximum)
        return {
            name: reduce(later, (p.steps[name] for p in self._parts if name in p.steps), NO_STEPS) for name in names
        }

    def beyond(self, promises: Promises) -> Promises:
        """The part of `promises` that goes beyond what was promised so far."""
        for part in self._parts:
            promises = promises.beyond(part)
        return promises

    def all(self) -> Promises:
        """As one set."""
        if len(self._parts) > 1:
            whole_set = NONE
            for part in reversed(self._parts):
                whole_set = part.plus(whole_set)
            self._parts = [whole_set]
        return self._parts[0] if self._parts else NONE

    def copy(self) -> "PromiseIndex":
        """An independent copy; cheap, as sets are immutable."""
        twin = PromiseIndex()
        twin._parts = list(self._parts)
        return twin

    def forget(self, cti: int) -> None:
        """Drop promises that the CTI implies."""
        self._parts = [kept for part in self._parts if len(kept := part.after(cti))]

    # --- state: one set of promises ----------------------------------------------------------------------------------

    def snapshot(self) -> Promises:
        return self.all()

    def verify(self, promises: Any) -> None:
        if not isinstance(promises, Promises):
            raise StateError(f"the snapshot of an index of promises is a {type(promises).__name__}, not promises")

    def restore(self, promises: Promises) -> None:
        self._parts = [promises] if len(promises) else []
