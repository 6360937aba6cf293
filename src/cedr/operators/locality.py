"""When state is kept in blocks: while chunks change little of it.

A chunk costs an operator either one pass over its state, kept as sorted arrays, or a multiple of the rows that it
touches, kept in blocks (`cedr.columnar.blocks`). Each operator starts with arrays, adds up what the chunks would have
cost either way, and changes the layout when that would have paid for the change several times. Blocks forget rows that
no longer matter only when as many have arrived as there are, in one pass over all of them.

The layout has no effect on results, and snapshots always have the arrays.
"""

FEW = 16_384
"""The minimum number of rows for blocks. Tests set it to 0, so that short streams use them."""

PATIENCE = 8
"""A change of the layout costs this many passes over the state."""


class Locality:
    """`touched_cost`: what a row costs that is touched in blocks, compared with a row in a pass over arrays."""

    def __init__(self, touched_cost: int) -> None:
        self.touched_cost = touched_cost
        self.saved = 0
        """What blocks would have saved so far, or arrays if it is negative, in rows of a pass."""
        self.patience = PATIENCE
        self.arrived = 0
        """Rows since the last pass over all."""

    def count(self, rows: int, arrived: int) -> None:
        """A chunk of `arrived` rows comes; they are touched at least."""
        limit = self.patience * rows
        self.saved = min(max(self.saved + rows - self.touched_cost * (arrived + 1), -limit), limit)
        self.arrived += arrived

    def touch(self, rows: int) -> None:
        """The chunk touched rows that were there."""
        self.saved -= self.touched_cost * rows

    def prefers_blocks(self, rows: int, now: bool) -> bool:
        """Whether blocks are better from now on; `now`: whether they are used."""
        if rows < FEW:
            return now and rows >= FEW // 2
        limit = self.patience * rows
        if now and self.saved <= -limit:
            self.patience *= 2  # touched rows were more than the rows of chunks suggested
            return False
        return now or self.saved >= limit

    def must_pass(self, rows: int) -> bool:
        """Whether enough rows have arrived for a pass over all."""
        return self.arrived >= max(rows, FEW)
