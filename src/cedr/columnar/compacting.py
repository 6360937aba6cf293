"""Numbers of rows that are no longer used, where the rows that refer to them are in blocks."""

import numpy as np

from cedr.columnar.blocks import SortedBlocks
from cedr.columnar.index import Ids, RowIndex
from cedr.columnar.mapped import MEMORY


def compact(index: RowIndex, *places: tuple[SortedBlocks, int]) -> Ids | None:
    """Drop the rows of an index whose numbers are in none of these columns of blocks, if they are at least half. The
    others get new numbers in the same order, there and in the blocks. Returns the new number of each old one."""
    if not index.may_compact():
        return None
    used = MEMORY.zeros(len(index), np.bool_)
    for blocks, column in places:
        blocks.mark(column, used)
    numbers = index.compact(used)
    if numbers is not None:
        for blocks, column in places:
            blocks.renumber(column, numbers)
    return numbers
