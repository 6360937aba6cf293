"""Columns of a frame by name, without the query engine behind `select`, which is most of the cost of small frames."""

from collections.abc import Iterable

import polars as pl


def picked(rows: pl.DataFrame, names: Iterable[str], called: Iterable[str] | None = None) -> pl.DataFrame:
    """Only these columns, in this order, optionally renamed."""
    columns = [rows.get_column(name) for name in names]
    if called is not None:
        columns = [column.alias(name) for column, name in zip(columns, called, strict=True)]
    return pl.DataFrame(columns) if columns else rows.select()
