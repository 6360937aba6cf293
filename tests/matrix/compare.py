"""Values that are the same: NaN is NaN, the zeros are one, times count to the last digit."""

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl


def same_rows(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    """The same rows in any order."""
    assert found.columns == expected.columns
    one, other = (
        Counter(map(repr, zip(*(comparable(frame[name]) for name in frame.columns), strict=True)))
        for frame in (found, expected)
    )
    assert one == other, f"found only {sorted((one - other).elements())}, missing {sorted((other - one).elements())}"


def comparable(values: pl.Series) -> list[Any]:
    """Values of which equal ones print alike."""
    return [plain(value) for value in (values.to_physical() if values.dtype.is_temporal() else values).to_list()]


def plain(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.12e}") + 0.0
    if isinstance(value, Fraction | Decimal):
        whole = Fraction(value)
        return whole.numerator if whole.denominator == 1 else whole
    return value
