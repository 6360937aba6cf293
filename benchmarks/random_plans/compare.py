"""Two tables as bags of rows: what is in one and not in the other.

Columns that are soft may differ in the last bits: by `TOLERANCE` of the larger one, or of 1 if both are smaller.
"""

from collections.abc import Collection

import numpy as np
import polars as pl

from random_plans.tables import INF, E, S, as_chronons

TOLERANCE = 1e-9


def answered(table: pl.DataFrame, time: pl.DataType) -> pl.DataFrame:
    """A result of cedr with lifetimes in chronons."""
    found = table.with_columns(as_chronons(pl.col(c), time).alias(c) for c in ("vs", "ve"))
    return found.with_columns(pl.col("ve").fill_null(INF)).rename({"vs": S, "ve": E})


def difference(expected: pl.DataFrame, found: pl.DataFrame, soft: Collection[str]) -> str | None:
    """What differs, or None."""
    if set(expected.columns) != set(found.columns):
        return f"columns: expected {expected.columns}, found {found.columns}"
    found = found.select(expected.columns)
    one, other = comparable(expected, found, soft)
    if one is None:
        return f"types: expected {expected.schema}, found {found.schema}"
    if one.height != other.height:
        return f"rows: expected {one.height:,}, found {other.height:,}\n{examples(one, other, soft)}"
    firm = [c for c in one.columns if c not in soft]
    order = [*firm, *sorted(c for c in one.columns if c in soft)]
    one, other = one.sort(order, nulls_last=True), other.sort(order, nulls_last=True)
    if not one.select(firm).equals(other.select(firm)):
        return f"values\n{examples(one, other, soft)}"
    for c in order[len(firm) :]:
        if not (close := near(one[c], other[c])).all():
            if all_near(one, other, firm, order[len(firm) :], np.flatnonzero(~close)):
                return None
            at = int(np.argmin(close))
            return f"values of {c}: expected {one[at].to_dicts()}, found {other[at].to_dicts()}"
    return None


def comparable(
    expected: pl.DataFrame, found: pl.DataFrame, soft: Collection[str]
) -> tuple[pl.DataFrame | None, pl.DataFrame]:
    """Both with the same types: numbers by value, whatever their width."""
    casts = {}
    for c in expected.columns:
        a, b = expected.schema[c], found.schema[c]
        if c in soft:
            casts[c] = pl.Float64()
        elif a == b:
            continue
        elif a.is_integer() and b.is_integer():
            casts[c] = pl.Int128()
        elif (a.is_decimal() and b.is_decimal()) or (a.is_decimal() and b.is_integer()):
            casts[c] = pl.Decimal(38, 6)
        elif a == pl.Null or b == pl.Null:
            casts[c] = b if a == pl.Null else a
        else:
            return None, found
    return expected.cast(casts), found.cast(casts)


def near(one: pl.Series, other: pl.Series) -> np.ndarray:
    a, b = one.to_numpy(), other.to_numpy()
    missing = one.is_null().to_numpy(), other.is_null().to_numpy()
    room = TOLERANCE * np.maximum(np.maximum(np.abs(a), np.abs(b)), 1.0)
    with np.errstate(invalid="ignore"):
        return (missing[0] & missing[1]) | (~missing[0] & ~missing[1] & (np.abs(a - b) <= room))


def all_near(one: pl.DataFrame, other: pl.DataFrame, firm: list[str], soft: list[str], at: np.ndarray) -> bool:
    """Rows equal but for soft columns may have been sorted differently: pair each with any that is near."""
    if len(at) > 1000:
        return False
    keys = one[at].select(firm).unique()
    a, b = (f.join(keys, on=firm, how="semi", nulls_equal=True) for f in (one, other))
    left = [tuple(r) for r in b.select(firm + soft).iter_rows()]
    for row in a.select(firm + soft).iter_rows():
        for i, candidate in enumerate(left):
            if row[: len(firm)] == candidate[: len(firm)] and all(
                close(x, y) for x, y in zip(row[len(firm) :], candidate[len(firm) :], strict=True)
            ):
                del left[i]
                break
        else:
            return False
    return True


def close(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is b
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b), 1.0)


def examples(one: pl.DataFrame, other: pl.DataFrame, soft: Collection[str]) -> str:
    """Some rows that only one side has."""
    firm = [c for c in one.columns if c not in soft]
    counts = [f.group_by(firm).len("n") for f in (one, other)]
    texts = []
    for what, a, b in (("only expected", *counts), ("only found", *reversed(counts))):
        both = a.join(b, on=firm, how="left", nulls_equal=True, suffix="_other")
        extra = both.filter(pl.col("n") > pl.col("n_other").fill_null(0)).sort(S, E)
        texts.append(f"{what}: {extra.height:,} rows, such as {extra.head(3).to_dicts()}")
    return "\n".join(texts)
