"""The tuples an operator has stored: sorted columns with names, shared by joins, sessions, sorts and live aggregates.

A store never changes; every method returns another one, and columns that stay are shared. Kernels get the columns as
flat arguments: `kernel(*store)`.
"""

from typing import Any, NamedTuple

import numpy as np

from cedr.columnar.chunk import Times
from cedr.contracts import DEBUG, sorted_by
from cedr.kernels import tuples as tu

Mask = np.ndarray[Any, np.dtype[np.bool_]]


class TupleStore(NamedTuple):
    """Tuples sorted by key, start, end and value; equal ones are one row with a number of copies."""

    key: Times
    """The number of a key or group; 0 for operators without keys."""
    vs: Times
    ve: Times
    value: Times
    """The number of a payload, or a value of one word."""
    copies: Times

    @staticmethod
    def empty() -> "TupleStore":
        return TupleStore(*tu.empty_tuples())

    @staticmethod
    def changes(key: Times, vs: Times, old: Times, new: Times, value: Times) -> "TupleStore":
        """The tuples that rows remove (with negative copies) and add."""
        return TupleStore(*tu.tuple_changes(key, vs, old, new, value))

    @property
    def rows(self) -> int:
        return len(self.key)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self)

    def merge(self, changes: "TupleStore") -> "TupleStore":
        assert not DEBUG or all(sorted_by(*tuples[:4]) for tuples in (self, changes)), "tuples are not sorted"
        return TupleStore(*tu.merge_tuples(*self, *changes))

    def take(self, which: Times | Mask) -> "TupleStore":
        return TupleStore(*(column[which] for column in self))

    def where(self, mask: Mask) -> "TupleStore":
        return self if mask.all() else self.take(mask)

    def split(self, mask: Mask) -> tuple["TupleStore", "TupleStore"]:
        """The tuples in the mask, and the others."""
        return self.where(mask), self.where(~mask)

    def renumber_keys(self, numbers: Times) -> "TupleStore":
        return self._replace(key=numbers[self.key])

    def renumber_values(self, numbers: Times) -> "TupleStore":
        """Values by their new numbers; negative ones are not numbers and stay."""
        return self._replace(value=np.where(self.value < 0, self.value, numbers[self.value]))
