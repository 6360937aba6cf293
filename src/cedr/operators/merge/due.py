"""The live nodes of a merge in the order in which progress concerns them, in blocks (see `cedr.columnar.blocks`).

When the CTI passes t, a merge has to look at nodes that start before t for the first time, and at half frozen ones
that end before t, in the output or in the input that it has to agree with. As long as an input agrees with the output
about a node, the end in the output serves for the input, too; so a node is in one list at a time, and in those of
inputs that are behind or have other ends. Progress costs the nodes that it concerns, however many there are.

For state that is large compared with what chunks change; otherwise one pass over all nodes is faster.
"""

from collections.abc import Callable, Iterable

import numpy as np

from cedr.columnar.blocks import Matrix, SortedBlocks
from cedr.columnar.index import Ids
from cedr.temporal.time import MIN

NODE = 2
"""The column of rows with the node."""
AT_ONCE = 65_536
"""Nodes whose rows are made at once."""


class DueNodes:
    """`rows_of`: the rows of nodes, see `cedr.kernels.due_nodes`; `nodes`: all that are live."""

    def __init__(self, nodes: Ids, rows_of: Callable[[Ids], Matrix]) -> None:
        self.blocks = SortedBlocks(4, 3, 3)
        parts = [rows_of(nodes[first : first + AT_ONCE]).copy() for first in range(0, len(nodes), AT_ONCE)]
        if parts:
            self.blocks.replace(in_order(np.concatenate(parts)))

    @property
    def nbytes(self) -> int:
        return self.blocks.nbytes

    @property
    def rows(self) -> int:
        return self.blocks.rows

    def change(self, before: Matrix, after: Matrix) -> None:
        """Some nodes have other rows than before."""
        self.blocks.change(in_order(before), in_order(after))

    def add(self, rows: Matrix) -> None:
        self.blocks.add(in_order(rows))

    def before(self, t: int, lists: Iterable[int]) -> Ids:
        """The nodes of some lists before a time, in the order of their numbers."""
        which = np.array(sorted(lists), dtype=np.int64)
        _, rows = self.blocks.between([which, np.full(len(which), MIN)], [which, np.full(len(which), t)])
        return np.unique(rows[:, NODE])

    def all_of(self, lists: Iterable[int]) -> Ids:
        """The nodes of some lists."""
        return np.unique(self.blocks.of_groups(np.array(sorted(lists), dtype=np.int64))[:, NODE])

    def renumber(self, numbers: Ids) -> None:
        """Nodes have new numbers, in the same order."""
        self.blocks.renumber(NODE, numbers)


def in_order(rows: Matrix) -> Matrix:
    return rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))] if len(rows) > 1 else rows
