"""What a select never lets through, read from its predicate: `hour == 8` excludes all hours before and after, for ever.

Understood are comparisons of one column with a value (`==`, `<`, `<=`, `>`, `>=`, `is_between`, `is_in`), `is_not_null`
and conjunctions of these. What is not understood excludes nothing. No comparison is true of a missing value. Other
values outside are derived for whole numbers, dates, times and texts; as ranges include their ends, those of texts
cannot stop right before a text.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import eq, ge, gt, le, lt
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from cedr.columnar.promises import NONE, Promises, promises_of
from cedr.columnar.promises.steps import unsorted_steps
from cedr.columnar.promises.values import is_whole
from cedr.plan.schema import Schema, conjuncts
from cedr.temporal.punctuation import Constant, Punctuation, Range
from cedr.temporal.time import INF, MIN

Compare = Callable[[Any, Any], Any]
MIRRORED: dict[Compare, Compare] = {eq: eq, lt: gt, le: ge, gt: lt, ge: le}
CLOSED = {"both": (ge, le), "left": (ge, lt), "right": (gt, le), "none": (gt, lt)}


class Comparison(NamedTuple):
    """`column compare value` holds for one of the values; without values: the column is not missing."""

    column: str
    compare: Compare
    values: pl.Series


def excluded(predicates: Iterable[pl.Expr], schema: Schema) -> Promises:
    """What no row matches for which all predicates hold, as promises without end."""
    found = NONE
    for predicate in predicates:
        for part in conjuncts(predicate):
            for comparison in comparisons(part):
                found = found.plus(outside(comparison, schema))
    return found


def excluded_values(predicates: Iterable[pl.Expr], schema: Schema) -> list["ExcludedValues"]:
    """The same, as values of single columns."""
    parts = [part for predicate in predicates for part in conjuncts(predicate)]
    return [values for part in parts for found in comparisons(part) for values in values_outside(found, schema)]


class ExcludedValues(NamedTuple):
    """Values of a column from `low` to `high`; None is without bound. `kind`: missing, number or text."""

    column: str
    kind: str
    low: Any = None
    high: Any = None

    def covers(self, other: "ExcludedValues") -> bool:
        if (self.column, self.kind) != (other.column, other.kind):
            return False
        low = self.low is None or (other.low is not None and self.low <= other.low)
        return low and (self.high is None or (other.high is not None and other.high <= self.high))


# --- reading a predicate ---------------------------------------------------------------------------------------------


def comparisons(predicate: pl.Expr) -> list[Comparison]:
    """What a predicate requires of one column, empty if it is not understood."""
    try:
        return list(understood(predicate))
    except PolarsError:  # it selects columns by pattern, or none
        return []


def understood(predicate: pl.Expr) -> Iterator[Comparison]:
    operands = predicate.meta.pop()
    column = next((o for o in operands if o.meta.is_column()), None)
    values = [literal(o) for o in reversed(operands) if o is not column and o.meta.is_literal()]
    if column is None or len(values) != len(operands) - 1:
        return
    name = column.meta.output_name()
    match operands:
        case [_]:
            if column.is_not_null().meta.eq(predicate):
                yield Comparison(name, eq, pl.Series([], dtype=pl.Null))
        case [right, left]:
            found = next((c for c in MIRRORED if c(left, right).meta.eq(predicate)), None)
            if found is not None:
                yield Comparison(name, found if left is column else MIRRORED[found], values[0])
            elif left is column and left.is_in(right).meta.eq(predicate):
                yield Comparison(name, eq, values[0].explode())
        case [high, low, _]:
            for closed, compares in CLOSED.items():
                if column.is_between(low, high, closed=closed).meta.eq(predicate):  # type: ignore[arg-type]
                    yield from map(Comparison, (name, name), compares, values)


def literal(expression: pl.Expr) -> pl.Series:
    return pl.select(expression).to_series()


# --- what lies outside -----------------------------------------------------------------------------------------------


def outside(comparison: Comparison, schema: Schema) -> Promises:
    name, kind = comparison.column, schema[comparison.column]
    if kind.is_nested():
        return NONE
    missing = promises_of([Punctuation({name: Constant(None)})], schema)
    values = comparison.values.drop_nulls()
    if not len(values):
        return missing
    if is_whole(kind):
        numbers = whole_numbers(values, kind)
        pieces = [(low, last) for low, last in gaps(comparison.compare, numbers) if low <= last] if numbers else []
        return missing.plus(for_ever(name, kind, pieces)) if pieces else missing
    if kind == pl.String and values.dtype == pl.String:
        texts = texts_outside(comparison.compare, max(values))
        return missing.plus(promises_of([Punctuation({name: texts})], schema)) if texts else missing
    return missing


def values_outside(comparison: Comparison, schema: Schema) -> Iterator[ExcludedValues]:
    """The values of `outside`."""
    name, kind = comparison.column, schema[comparison.column]
    if kind.is_nested():
        return
    yield ExcludedValues(name, "missing")
    values = comparison.values.drop_nulls()
    if not len(values):
        return
    if is_whole(kind) and (numbers := whole_numbers(values, kind)):
        yield from (
            ExcludedValues(name, "number", *gap) for gap in gaps(comparison.compare, numbers) if gap[0] <= gap[1]
        )
    if kind == pl.String and values.dtype == pl.String:
        texts = texts_outside(comparison.compare, max(values))
        if texts is not None:
            yield ExcludedValues(name, "text", texts.low, texts.high)


def whole_numbers(values: pl.Series, kind: pl.DataType) -> list[int]:
    """The numbers behind the values of a column of this type, in order; none if they are not values of it."""
    if kind.is_integer() and values.dtype.is_integer():
        return sorted(v for v in values.to_list() if MIN < v < INF)
    if values.dtype.base_type() != kind.base_type():
        return []
    same = values.cast(kind)
    return sorted(same.to_physical().to_list()) if same.cast(values.dtype).equals(values) else []


def gaps(compare: Compare, numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges, ends included, of whole numbers that do not compare with any of these as required."""
    first, last = numbers[0], numbers[-1]
    if compare in (eq, gt, ge):
        yield MIN, first if compare is gt else first - 1
    if compare is eq:
        yield from ((low + 1, high - 1) for low, high in pairwise(numbers))
    if compare in (eq, lt, le):
        yield last if compare is lt else last + 1, INF


def for_ever(name: str, kind: pl.DataType, pieces: Sequence[tuple[int, int]]) -> Promises:
    low, last = np.array(pieces, dtype=np.int64).T
    return Promises(steps={name: unsorted_steps(low, last, np.full(len(low), INF))}, kinds={name: kind})


def texts_outside(compare: Compare, last: str) -> Range | None:
    """The texts after the last one that matches, or up to it."""
    if compare in (eq, le):
        return Range(last + "\0", None)
    return {lt: Range(last, None), gt: Range(None, last)}.get(compare)
