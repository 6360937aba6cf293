"""How values that a user promises about stand in columns of a type."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.times import Times
from cedr.temporal.errors import PayloadError
from cedr.temporal.row import Row, payload
from cedr.temporal.time import INF, MIN

Mask = np.ndarray[Any, np.dtype[np.bool_]]


def stored(name: str, values: Sequence[Any], kind: pl.DataType) -> tuple[pl.Series, Mask]:
    """The values as a column, and which of them it can hold: a whole number is never 1.5."""
    try:
        column = pl.Series(name, [plain(v) for v in values], dtype=kind, strict=False).cast(kind)
        held = [same(payload(there), value) for there, value in zip(column.to_list(), values, strict=True)]
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        column, held = pl.Series(name, [None] * len(values), dtype=kind), [value is None for value in values]
    for value, fits in zip(values, held, strict=True):
        if not fits and not (is_number(value) and kind.is_numeric()):
            raise PayloadError(
                f"a punctuation speaks of {name}={value!r}, but {name} is {kind}; it would never be about any payload"
            )
    return column, np.array(held, dtype=np.bool_)


def plain(value: Any) -> Any:
    """A payload as polars takes it."""
    if isinstance(value, Row):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def same(one: Any, two: Any) -> bool:
    return one is two or bool(one == two)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal)


def recast(column: pl.Series, kind: pl.DataType) -> tuple[pl.Series, Mask]:
    """A column in another type, and which values of it that type can hold."""
    if column.dtype == kind:
        return column, np.ones(len(column), dtype=np.bool_)
    cast = column.cast(kind, strict=False)
    back = cast.cast(column.dtype, strict=False)
    return cast, back.eq_missing(column).to_numpy()


# --- whole numbers ---------------------------------------------------------------------------------------------------


def is_whole(kind: pl.DataType) -> bool:
    """Whether values are whole numbers underneath, so that ranges can meet."""
    return (kind.is_integer() and kind not in (pl.UInt64, pl.Int128, pl.UInt128)) or kind.is_temporal()


def whole(column: pl.Series, kind: pl.DataType) -> tuple[Times, Mask]:
    """The whole numbers behind the values as the type has them, and where there is one."""
    cast, held = recast(column, kind)
    numbers = cast.to_physical().cast(pl.Int64).fill_null(0).to_numpy()
    return numbers, held & cast.is_not_null().to_numpy()


def value_of(number: int, kind: pl.DataType) -> Any:
    """The value behind a whole number, None where the calendar has ended."""
    if kind.is_integer():
        return number
    physical = pl.Series([], dtype=kind).to_physical().dtype
    try:
        return pl.Series([number], dtype=physical).cast(kind)[0]
    except (ValueError, OverflowError, TypeError):
        return None


def first_from(name: str, value: Any, kind: pl.DataType) -> int:
    """The smallest whole number whose value is not below this one; past INF when there is none."""
    number, there = nearest(name, value, kind)
    return number + (there < value)


def last_up_to(name: str, value: Any, kind: pl.DataType) -> int:
    """The largest whole number whose value is not above this one."""
    number, there = nearest(name, value, kind)
    return number - (there > value)


def nearest(name: str, value: Any, kind: pl.DataType) -> tuple[int, Any]:
    """A whole number close to the value, and the value behind it."""
    if kind.is_integer() and is_number(value):
        number = INF if value != value else int(min(max(value, MIN), INF))  # NaN comes after all numbers
        return number, number
    column = pl.Series(name, [value], dtype=kind, strict=False)
    if column.dtype != kind or column[0] is None or type(column[0]) is not type(value):
        stored(name, [value], kind)
    return int(column.to_physical()[0]), column[0]
