"""Points: promises about constants, a table per set of attributes, so that a lookup is a hash join."""

from collections.abc import Callable, Mapping

import numpy as np
import polars as pl

from cedr.columnar.index import RowIndex
from cedr.columnar.promises.values import recast
from cedr.columnar.times import Times
from cedr.temporal.time import MIN

BEFORE = "_before"
"""The column of times in a table of points."""

MANY = 10_000
"""Minimum size of tables that get an index for lookups of few rows: a join would hash the whole table each time."""

Names = tuple[str, ...]
Points = Mapping[Names, pl.DataFrame]
Indexes = dict[Names, RowIndex]


def later_of(*tables: pl.DataFrame) -> pl.DataFrame:
    """One row per key, with the latest time."""
    table = pl.concat(tables)
    names = [name for name in table.columns if name != BEFORE]
    return table.group_by(names).agg(pl.col(BEFORE).max())


def looked_up(points: Points, rows: pl.DataFrame, indexes: Indexes | None = None) -> Times:
    """The latest time promised for each row by tables about its columns. `indexes` caches those of large tables."""
    found = np.full(rows.height, MIN, dtype=np.int64)
    for names, table in points.items():
        if table.height and set(names) <= set(rows.columns):
            keys = rows.select(names)
            if indexes is None or table.height < MANY or table.height < 4 * rows.height:
                found = np.maximum(found, lookup(keys, table))
            else:
                if names not in indexes:
                    indexes[names] = RowIndex({name: table.schema[name] for name in names})
                    indexes[names].restore(table.select(names))
                found = np.maximum(found, lookup_by(indexes[names], keys, table))
    return found


def lookup(keys: pl.DataFrame, table: pl.DataFrame) -> Times:
    return joined(keys, as_typed(table, keys), keys.columns)[BEFORE].fill_null(MIN).to_numpy()


def lookup_by(index: RowIndex, keys: pl.DataFrame, table: pl.DataFrame) -> Times:
    """The same by an index of the table, whatever its size."""
    columns, held = zip(*(recast(keys[name], kind) for name, kind in index.schema.items()), strict=True)
    place = index.ids(pl.DataFrame(columns), add=False)
    return np.where(np.all(held, axis=0) & (place >= 0), table[BEFORE].to_numpy()[place], MIN)


def met_points(table: pl.DataFrame, of: Callable[[pl.DataFrame], Times], cti: int) -> pl.DataFrame:
    """The points with times no later than those of another set and its CTI."""
    limit = np.maximum(of(table.drop(BEFORE)), cti)
    return table.with_columns(pl.Series(BEFORE, np.minimum(table[BEFORE].to_numpy(), limit)))


def held_points(table: pl.DataFrame, rows: pl.DataFrame, until: Times) -> pl.DataFrame:
    """The points with times no later than `until` of any row that agrees in the columns both have."""
    names = [name for name in table.columns if name in rows.columns]
    if not names:
        return table.with_columns(pl.min_horizontal(BEFORE, pl.lit(int(until.min()))).alias(BEFORE))
    keys = as_typed(rows.select(names).with_columns(pl.Series("_until", until)), table)
    least = keys.group_by(names).agg(pl.col("_until").min())
    return joined(table, least, names).select(
        pl.exclude(BEFORE, "_until"), pl.min_horizontal(BEFORE, "_until").alias(BEFORE)
    )


def joined(rows: pl.DataFrame, table: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Each row with the columns of the table for its key."""
    if len(names) == 1 and rows.schema[names[0]].is_float():
        # polars merge-joins two columns flagged as sorted and then misses NaN; several columns are always hash-joined.
        rows, table, names = rows.with_columns(_=0), table.with_columns(_=0), [*names, "_"]
        return joined(rows, table, names).drop("_")
    return rows.join(table, on=names, how="left", nulls_equal=True, maintain_order="left")


def as_typed(table: pl.DataFrame, like: pl.DataFrame) -> pl.DataFrame:
    """The table with the types of another one, without rows whose values do not fit them."""
    for name, kind in table.schema.items():
        if name in like.columns and kind != like.schema[name]:
            column, held = recast(table[name], like.schema[name])
            table = table.with_columns(column).filter(pl.Series(held))
    return table


def needed(points: Points, steps_at: Mapping[Names, Times]) -> dict[Names, pl.DataFrame]:
    """The points that no promise about fewer attributes covers; `steps_at` are the times of steps for each table."""
    kept: dict[Names, pl.DataFrame] = {}
    for names, table in points.items():
        fewer = {other: t for other, t in points.items() if set(other) < set(names)}
        limit = np.maximum(looked_up(fewer, table), steps_at[names])
        kept[names] = table if (limit == MIN).all() else table.filter(pl.Series(table[BEFORE].to_numpy() > limit))
    return kept
