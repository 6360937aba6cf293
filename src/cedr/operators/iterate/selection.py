"""The order in which a loop with a selection prefers the rows of a group."""

import numpy as np
import polars as pl

from cedr.columnar.chunk import Times
from cedr.plan.loop import LoopSelection


def preferred(selection: LoopSelection, rows: pl.DataFrame, groups: Times) -> Times:
    """The places of rows by group, the best of each group first, in the order of `top_k`."""
    ties = sorted(rows.columns)
    ranked = rows.with_columns(pl.Series("_group", groups)).with_row_index("_row")
    order = ranked.sort(
        ["_group", *selection.order, *ties],
        descending=[False, *selection.descending, *(False for _ in ties)],
        nulls_last=[False, *(True for _ in selection.order), *(False for _ in ties)],
    )["_row"]
    return order.to_numpy().astype(np.int64)
