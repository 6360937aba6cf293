"""The tuples an operator has stored: sorted columns with names, shared by joins, sessions, sorts and live aggregates.

A store never changes; every method returns another one, and columns that stay are shared. Kernels get the columns as
flat arguments: `kernel(*store)`.
"""

from typing import Any, NamedTuple

import numpy as np

from cedr.columnar.blocks import Matrix, SortedBlocks
from cedr.columnar.chunk import Times
from cedr.columnar.increments import BlockColumns
from cedr.contracts import DEBUG, sorted_by
from cedr.kernels import tuples as tu
from cedr.operators.two_layouts import BlockView

Mask = np.ndarray[Any, np.dtype[np.bool_]]
KEY, START, END, VALUE, COPIES = range(5)
"""Columns of tuples in blocks."""


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

    def negated(self) -> "TupleStore":
        """The change that removes these tuples."""
        return self._replace(copies=-self.copies)

    def matrix(self) -> Matrix:
        """A row for each tuple."""
        return np.column_stack(self)

    def renumber_keys(self, numbers: Times) -> "TupleStore":
        return self._replace(key=numbers[self.key])

    def renumber_values(self, numbers: Times) -> "TupleStore":
        """Values by their new numbers; negative ones are not numbers and stay."""
        return self._replace(value=np.where(self.value < 0, self.value, numbers[self.value]))


class TupleBlocks:
    """Tuples as in a `TupleStore`, in blocks: a change touches a few of them, however many tuples there are."""

    def __init__(self, tuples: TupleStore) -> None:
        self.blocks = SortedBlocks(5, 4, 4)
        self.blocks.replace(tuples.matrix())

    @property
    def rows(self) -> int:
        return self.blocks.rows

    @property
    def nbytes(self) -> int:
        return self.blocks.nbytes

    def add(self, *changes: TupleStore) -> None:
        """Add changes, each of them sorted."""
        some = [c for c in changes if c.rows]
        if some:
            rows = np.concatenate([c.matrix() for c in some]) if len(some) > 1 else some[0].matrix()
            self.blocks.add(rows if len(some) == 1 else sorted_rows(rows, 4))

    def of_keys(self, keys: Times) -> TupleStore:
        """The tuples of sorted keys; the place of a key among them is its number."""
        which, rows = self.blocks.between([keys], [keys + 1])
        return TupleStore(which, *rows[:, 1:].T.copy())

    def view(self, ended: int | None = None) -> BlockView:
        """As the columns of a store; tuples that end by a time do not count."""
        above = None if ended is None else (END, ended)
        return BlockView(self.blocks, BlockColumns((0, 1, 2, 3, 4), TupleStore._fields, above=above))

    def flat(self) -> TupleStore:
        return TupleStore(*self.blocks.flat().T.copy())


def sorted_rows(rows: Matrix, depth: int) -> Matrix:
    """Rows sorted by their first columns."""
    return rows[np.lexsort(rows[:, :depth].T[::-1])]
