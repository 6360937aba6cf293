"""Others: promises that are neither points nor steps. Each costs one pass over the rows of a lookup."""

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from cedr.columnar.promises.values import Mask, plain
from cedr.columnar.times import Times
from cedr.temporal.punctuation import ANY, Constant, OneOf, Pattern, Punctuation, Range
from cedr.temporal.time import INF, MIN


def promised(others: Sequence[Punctuation], rows: pl.DataFrame) -> Times:
    """The latest time promised for each row by punctuations about its columns."""
    found = np.full(rows.height, MIN, dtype=np.int64)
    for p in others:
        if set(p.attributes) <= set(rows.columns):
            np.maximum(found, np.where(may_match(rows, p), p.before, MIN), out=found)
    return found


def held(p: Punctuation, rows: pl.DataFrame, until: Times) -> Punctuation:
    """The punctuation with a time no later than `until` of any row that agrees in the columns it has."""
    return Punctuation(p.patterns, min(p.before, int(until[may_match(rows, p)].min(initial=INF))))


def may_match(rows: pl.DataFrame, p: Punctuation) -> Mask:
    """Which rows match the punctuation in all columns that they have."""
    tests = [about(pl.col(name), q) for name, q in p.patterns.items() if name in rows.columns]
    if not tests:
        return np.ones(rows.height, dtype=np.bool_)
    return rows.select(pl.all_horizontal(tests).alias("matches"))["matches"].to_numpy()


def about(column: pl.Expr, p: Pattern) -> pl.Expr:
    match p:
        case Constant(value):
            return column.eq_missing(pl.lit(plain(value)))
        case OneOf(values):
            return pl.any_horizontal([column.eq_missing(pl.lit(plain(v))) for v in values])
        case Range(low, high):
            inside = column.is_not_null()
            if low is not None:
                inside &= column >= pl.lit(low)
            if high is not None:
                inside &= column <= pl.lit(high)
            return inside.fill_null(False)
    return pl.lit(p == ANY)


def undominated(punctuations: Iterable[Punctuation]) -> tuple[Punctuation, ...]:
    """The punctuations that no other one covers."""
    kept: list[Punctuation] = []
    for p in punctuations:
        if p.empty or any(q.covers(p) for q in kept):
            continue
        kept = [q for q in kept if not p.covers(q)]
        kept.append(p)
    return tuple(kept)
