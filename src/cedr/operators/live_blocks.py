"""Live tuples in blocks, for chunks that are small compared with the state: see `live`.

All tuples, by group, start, end and value, and where it is needed the same again in other orders:

by start   group, start, value, end: the first and the last tuple that is live at a time
by value   group, value, start, end: the smallest and the largest value that is live at a time
by end     end, group, start, value: what is over and settled

An answer for a time is the first live tuple in an order. What is over and settled is removed from the orders, so that
those that are passed on the way there are not settled yet, or have not begun: as many as arrive between two times of
progress.
"""

from collections.abc import Iterable

import numpy as np

from cedr.columnar.blocks import Matrix, SortedBlocks
from cedr.columnar.chunk import Times
from cedr.kernels.live_blocks import first_live
from cedr.operators.tuple_store import Mask, TupleBlocks, TupleStore
from cedr.temporal.time import MIN

Order = tuple[int, ...]
"""The columns of a `TupleStore` as they are in rows."""
AS_STORED: Order = (0, 1, 2, 3, 4)
GROUP, START, END, VALUE, COPIES = AS_STORED
BY_START = (GROUP, START, VALUE, END, COPIES)
BY_VALUE = (GROUP, VALUE, START, END, COPIES)
BY_END = (END, GROUP, START, VALUE, COPIES)


class LiveBlocks:
    """`orders`: those that are searched, `BY_START` or `BY_VALUE`."""

    def __init__(self, tuples: TupleStore, orders: Iterable[Order]) -> None:
        self.tuples = TupleBlocks(tuples)
        searched = list(orders)
        self.orders = {order: SortedBlocks(5, 4, 4) for order in (*searched, *([BY_END] if searched else []))}
        for order, blocks in self.orders.items():
            blocks.replace(arranged(tuples, order))

    @property
    def rows(self) -> int:
        return self.tuples.rows

    @property
    def nbytes(self) -> int:
        return self.tuples.nbytes + sum(blocks.nbytes for blocks in self.orders.values())

    def add(self, changes: TupleStore) -> None:
        self.tuples.add(changes)
        self._add_to_orders(changes)

    def _add_to_orders(self, changes: TupleStore) -> None:
        if changes.rows:
            for order, blocks in self.orders.items():
                blocks.add(arranged(changes, order))

    def flat(self) -> TupleStore:
        return self.tuples.flat()

    def of_groups(self, groups: Times) -> TupleStore:
        """The tuples of sorted groups."""
        return tuples_of(self.tuples.blocks.of_groups(groups), AS_STORED)

    def with_lifetimes(self, g: Times, vs: Times, ve: Times) -> tuple[Times, TupleStore]:
        """The tuples of groups with a start and an end, which are sorted, and to which of these each belongs."""
        which, rows = self.tuples.blocks.between([g, vs], [g, vs + 1])  # an end of infinity has no next one
        same = rows[:, END] == ve[which]
        return which[same], tuples_of(rows[same], AS_STORED)

    def first_live(self, order: Order, g: Times, t: Times, backwards: bool) -> tuple[Times, Mask]:
        """The value that comes first in an order, at each of these times, and whether there is one."""
        columns = (order.index(START), order.index(END), order.index(VALUE))
        values, found = first_live(*self.orders[order].arrays, g, t, columns, backwards)
        return values, found

    def settle(self, before: int) -> None:
        """Tuples that ended before a time will not be searched again."""
        if self.orders:
            _, rows = self.orders[BY_END].between([np.array([MIN])], [np.array([before])])
            self._add_to_orders(tuples_of(rows, BY_END).negated())

    def forget(self, groups: Times, before: int) -> None:
        """Drop tuples of some groups that ended before a time, which is settled."""
        rows = self.tuples.blocks.of_groups(groups)
        self.tuples.blocks.remove(rows[rows[:, END] < before])

    def renumber_groups(self, numbers: Times) -> None:
        self.tuples.blocks.renumber(GROUP, numbers)
        for order, blocks in self.orders.items():
            blocks.renumber(order.index(GROUP), numbers)


def tuples_of(rows: Matrix, order: Order) -> TupleStore:
    """Rows with their columns in an order as tuples."""
    return TupleStore(*(np.ascontiguousarray(rows[:, order.index(column)]) for column in AS_STORED))


def arranged(tuples: TupleStore, order: Order) -> Matrix:
    """Tuples as sorted rows with their columns in an order."""
    columns = [tuples[column] for column in order]
    rows: Matrix = np.column_stack(columns)
    return rows[np.lexsort(columns[3::-1])]
