"""When state is kept in blocks: while chunks change little of it.

A chunk costs an operator either one pass over its state, kept as sorted arrays, or a multiple of the rows that it
touches, kept in blocks (`cedr.columnar.blocks`). Each operator starts with arrays, adds up what the chunks would have
cost either way, and changes the layout when that would have paid for the change several times.

The layout has no effect on results. A snapshot has the arrays, or for increments blocks that are read as these arrays.
"""

from cedr.columnar.mapped import MEMORY

FEW = 16_384
"""The minimum number of rows for blocks. Tests set it to 0, so that short streams use them."""

PATIENCE = 4
"""The layout changes when the other one would have saved this many passes over the state."""


class Locality:
    """`touched_cost`: what a row costs that is touched in blocks, compared with a row in a pass over arrays."""

    def __init__(self, touched_cost: int) -> None:
        self.touched_cost, self.patience = touched_cost, PATIENCE
        self.lost = 0
        """What the other layout would have saved, in rows of a pass."""

    def prefers_blocks(self, rows: int, arrived: int, now: bool) -> bool:
        """Whether blocks are better, from a chunk of `arrived` rows on; `now`: whether they are used."""
        saved = rows - self.touched_cost * (arrived + 1)
        self.lost = max(0, self.lost + (-saved if now else saved))
        if rows < FEW:
            return now and rows >= FEW // 2
        if MEMORY.is_short:  # only blocks can be in files
            return True
        if self.lost < self.patience * rows:
            return now
        if now:
            self.patience *= 2  # blocks did not pay: chunks touched more than their own rows
        return not now

    def touch(self, rows: int) -> None:
        """The chunk touched rows in blocks that were there."""
        self.lost += self.touched_cost * rows

    def changed(self) -> None:
        """The layout has changed."""
        self.lost = 0
