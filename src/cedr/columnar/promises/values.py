"""Conversion of the values in punctuations to the types of columns."""

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
    """The values as a column, and which of them it can hold: a column of integers cannot hold 1.5."""
    try:
        column = pl.Series(name, [plain(v) for v in values], dtype=kind, strict=False).cast(kind)
        held = [same(payload(there), value) for there, value in zip(column.to_list(), values, strict=True)]
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        column, held = pl.Series(name, [None] * len(values), dtype=kind), [value is None for value in values]
    for value, fits in zip(values, held, strict=True):
        if not fits and not (is_number(value) and kind.is_numeric()):
            raise PayloadError(
                f"a punctuation is about {name}={value!r}, but {name} is {kind}; it would never match any payload"
            )
    return column, np.array(held, dtype=np.bool_)


def plain(value: Any) -> Any:
    """A payload in the form that polars accepts."""
    if isinstance(value, Row):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def same(one: Any, two: Any) -> bool:
    return one is two or bool(one == two)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal)


def recast(column: pl.Series, kind: pl.DataType) -> tuple[pl.Series, Mask]:
    """A column cast to another type, and which of its values that type can hold."""
    if column.dtype == kind:
        return column, np.ones(len(column), dtype=np.bool_)
    cast = column.cast(kind, strict=False)
    back = cast.cast(column.dtype, strict=False)
    return cast, back.eq_missing(column).to_numpy()


# --- whole numbers ---------------------------------------------------------------------------------------------------


def is_whole(kind: pl.DataType) -> bool:
    """Whether values are stored as integers, so that ranges can be adjacent."""
    return (kind.is_integer() and kind not in (pl.UInt64, pl.Int128, pl.UInt128)) or kind.is_temporal()


def whole(column: pl.Series, kind: pl.DataType) -> tuple[Times, Mask]:
    """The integer representation of the values in the given type, and which values have one."""
    cast, held = recast(column, kind)
    numbers = cast.to_physical().cast(pl.Int64).fill_null(0).to_numpy()
    return numbers, held & cast.is_not_null().to_numpy()


def value_of(number: int, kind: pl.DataType) -> Any:
    """The value of an integer representation; None outside the calendar."""
    if kind.is_integer():
        return number
    physical = pl.Series([], dtype=kind).to_physical().dtype
    try:
        return pl.Series([number], dtype=physical).cast(kind)[0]
    except (ValueError, OverflowError, TypeError):
        return None


def first_from(name: str, value: Any, kind: pl.DataType) -> int:
    """The smallest integer whose value is not below this one; beyond INF when there is none."""
    number, there = nearest(name, value, kind)
    return number + (there < value)


def last_up_to(name: str, value: Any, kind: pl.DataType) -> int:
    """The largest integer whose value is not above this one."""
    number, there = nearest(name, value, kind)
    return number - (there > value)


def nearest(name: str, value: Any, kind: pl.DataType) -> tuple[int, Any]:
    """An integer close to the value, and its value."""
    if kind.is_integer() and is_number(value):
        number = INF if value != value else int(min(max(value, MIN), INF))  # NaN comes after all numbers
        return number, number
    column = pl.Series(name, [value], dtype=kind, strict=False)
    if column.dtype != kind or column[0] is None or type(column[0]) is not type(value):
        stored(name, [value], kind)
    return int(column.to_physical()[0]), column[0]
