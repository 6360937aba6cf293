"""Which of the rows that a loop derives it holds: each once, or of each group the one that comes first in an order.

The second is aggregate selection: a shortest path makes longer ones needless, so these are not followed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from cedr.columnar.chunk import Times


@dataclass(frozen=True)
class Selection:
    by: tuple[str, ...]
    """The columns of a group."""
    order: tuple[str, ...]
    descending: tuple[bool, ...]

    def called(self, names: Mapping[str, str]) -> "Selection":
        """The same of rows whose columns have other names."""
        by, order = (tuple(names[name] for name in columns) for columns in (self.by, self.order))
        return replace(self, by=by, order=order)

    def preferred(self, rows: pl.DataFrame, groups: Times) -> Times:
        """The places of rows by group, the best of each group first, in the order of `top_k`."""
        ties = sorted(rows.columns)
        ranked = rows.with_columns(pl.Series("_group", groups)).with_row_index("_row")
        order = ranked.sort(
            ["_group", *self.order, *ties],
            descending=[False, *self.descending, *(False for _ in ties)],
            nulls_last=[False, *(True for _ in self.order), *(False for _ in ties)],
        )["_row"]
        return order.to_numpy().astype(np.int64)

    def __str__(self) -> str:
        return f"the best by {in_order(self.order, self.descending)} per {', '.join(self.by) or 'snapshot'}"


def in_order(columns: Sequence[str], descending: Sequence[bool]) -> str:
    return ", ".join(f"{c} {'desc' if d else 'asc'}" for c, d in zip(columns, descending, strict=True))
