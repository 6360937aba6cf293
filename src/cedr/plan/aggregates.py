"""Aggregates: what to compute of the tuples that live together, and the functions of the API that describe it.

The definitions are in `cedr.reference.aggregate`.

Missing values do not take part; an aggregate of nothing but missing values is missing, a count of them 0.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NoReturn

import polars as pl

from cedr.plan.schema import as_schema, column_name, column_names
from cedr.temporal.errors import QueryError

Schema = Mapping[str, pl.DataType]


@dataclass(frozen=True)
class ColumnAggregate:
    """An aggregate of one column."""

    kernel: ClassVar[str] = ""
    """The function of `cedr.kernels.tuples` that chooses one of the live tuples at each end point, if one does. All
    such kernels have the same arguments; values are their ranks."""

    counting: ClassVar[bool] = False
    """The kernel computes whole numbers instead of choosing tuples. It needs to know which values are equal, not how
    they are ordered."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def dtype(self, schema: Schema) -> pl.DataType:
        """The type of the result, after checking that the column can be aggregated this way."""
        return self.input_type(schema)

    def input_type(self, schema: Schema) -> pl.DataType:
        if self.column not in schema:
            raise QueryError(f"{self}: no column {self.column!r}; there are: {', '.join(schema)}")
        return pl.DataFrame(schema={self.column: schema[self.column]}).schema[self.column]

    def numeric(self, schema: Schema) -> pl.DataType:
        """The type of a column that can be added up."""
        kind = self.input_type(schema)
        if kind in (pl.Int128, pl.UInt128):
            raise QueryError(f"{self}: {self.column!r} is of type {kind}; cast it to Decimal(38, 0) or Int64 before")
        if not (kind.is_numeric() or kind == pl.Boolean):
            raise QueryError(
                f"{self} needs numbers, but {self.column!r} is of type {kind}; "
                "count, min, max, first, last and quantile take values of any type"
            )
        return kind

    @property
    def squares(self) -> bool:
        """Whether the sum of the squares is needed, too."""
        return False

    def __str__(self) -> str:
        return f"{type(self).__name__.lower()}({self.column})"

    def _calculated_with(self, other: Any) -> NoReturn:
        raise QueryError(
            f"{self} cannot be part of a calculation; name it, and calculate with the name afterwards: "
            f'.agg(x={self}).with_columns(y=pl.col("x") + 1)'
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _calculated_with
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _calculated_with
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __rand__ = __or__ = __ror__ = _calculated_with

    def __neg__(self) -> NoReturn:
        self._calculated_with(None)


@dataclass(frozen=True)
class Count(ColumnAggregate):
    column: str | None = None  # type: ignore[assignment]

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,) if self.column else ()

    def dtype(self, schema: Schema) -> pl.DataType:
        if self.column:
            self.input_type(schema)
        return pl.Int64()

    def __str__(self) -> str:
        return f"count({self.column or ''})"


@dataclass(frozen=True)
class Sum(ColumnAggregate):
    """Exact. Doubles are rounded once; a whole number or decimal that its type cannot hold is an error."""

    def dtype(self, schema: Schema) -> pl.DataType:
        kind = self.input_type(schema)
        if isinstance(kind, pl.Duration):
            return kind
        if isinstance(number := self.numeric(schema), pl.Decimal):
            return pl.Decimal(38, number.scale)
        if kind.is_float():
            return pl.Float64()
        return pl.UInt64() if kind == pl.UInt64 else pl.Int64()


@dataclass(frozen=True)
class Avg(ColumnAggregate):
    """The exact sum divided by the number of values, rounded once."""

    def dtype(self, schema: Schema) -> pl.DataType:
        kind = self.input_type(schema)
        if isinstance(kind, pl.Duration) and not self.squares:
            return kind
        self.numeric(schema)
        return pl.Float64()


@dataclass(frozen=True)
class Stddev(Avg):
    """Of a sample: divided by n - 1, missing for fewer than two values."""

    @property
    def squares(self) -> bool:
        return True


@dataclass(frozen=True)
class Partial(ColumnAggregate):
    """What a part of the rows contributes to a sum, an average or a standard deviation: exact sums as bytes."""

    of: ColumnAggregate = Count()

    def dtype(self, schema: Schema) -> pl.DataType:
        self.of.dtype(schema)
        return pl.Binary()

    @property
    def squares(self) -> bool:
        return self.of.squares

    def __str__(self) -> str:
        return f"partial {self.of}"


@dataclass(frozen=True)
class Whole(ColumnAggregate):
    """The aggregate `of` a column of type `input`, from its partial sums."""

    of: ColumnAggregate = Count()
    input: pl.DataType = pl.Int64()  # noqa: RUF009 data types are values

    def dtype(self, schema: Schema) -> pl.DataType:
        return self.of.dtype({self.of.column: self.input})

    @property
    def squares(self) -> bool:
        return self.of.squares

    def __str__(self) -> str:
        return f"{self.of} of {self.column}"


@dataclass(frozen=True)
class Min(ColumnAggregate):
    pass


@dataclass(frozen=True)
class Max(ColumnAggregate):
    pass


@dataclass(frozen=True)
class First(ColumnAggregate):
    """The value of the tuple that starts first; ties by value."""


@dataclass(frozen=True)
class Last(ColumnAggregate):
    """The value of the tuple that starts last; ties by value."""


@dataclass(frozen=True)
class Quantile(ColumnAggregate):
    """The smallest value that at least the share q of the values does not exceed; q means what it is written as."""

    q: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.q <= 1:
            raise QueryError(f"quantile {self.q}: the share must lie between 0 and 1")

    def place(self, n: int) -> int:
        """The place, from 0, of that value among n sorted ones."""
        place = math.ceil(Fraction(str(self.q)) * n) - 1
        return place if place > 0 else 0

    def __str__(self) -> str:
        return f"quantile({self.column}, {self.q})"


@dataclass(frozen=True)
class CountDistinct(ColumnAggregate):
    """The number of different values."""

    kernel = "distinct_counts"
    counting = True

    def dtype(self, schema: Schema) -> pl.DataType:
        self.input_type(schema)
        return pl.Int64()

    def __str__(self) -> str:
        return f"count_distinct({self.column})"


@dataclass(frozen=True)
class Mode(ColumnAggregate):
    """The value that occurs most often; the smallest of several."""

    kernel = "most_frequent"


@dataclass(frozen=True)
class UserDefined(ColumnAggregate):
    """`function` of the live rows, as a frame with the named columns; called once per changed snapshot."""

    column: str = ""
    names: tuple[str, ...] = ()
    function: Callable[[pl.DataFrame], Any] = len
    result: pl.DataType = pl.Float64()  # noqa: RUF009 data types are values

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names

    def dtype(self, schema: Schema) -> pl.DataType:
        for name in self.names:
            ColumnAggregate(name).input_type(schema)
        return self.result

    def __str__(self) -> str:
        return f"{getattr(self.function, '__name__', 'function')}({', '.join(self.names)})"


BY_NAME: dict[str, Callable[[str], ColumnAggregate]] = {
    "count": Count,
    "sum": Sum,
    "avg": Avg,
    "min": Min,
    "max": Max,
    "stddev": Stddev,
    "first": First,
    "last": Last,
    "median": Quantile,
    "count_distinct": CountDistinct,
    "mode": Mode,
}
"""The aggregates of one column, by their names in the API and in the language."""
NUMBERS_ONLY = ("sum", "avg", "stddev")
"""Those that add values up."""


SUMS = (Count, Sum, Avg, Stddev, Partial, Whole)


# --- the functions of the API ----------------------------------------------------------------------------------------

Column = str | pl.Expr
"""A column name. `pl.col(name)` is accepted, other expressions are rejected."""


def count(column: Column | None = None) -> ColumnAggregate:
    """The number of rows, or of rows with a value in the column."""
    return Count(None if column is None else column_name(column, "count"))


def sum(column: Column) -> ColumnAggregate:
    """The sum of the values; missing values are ignored."""
    return Sum(column_name(column, "sum"))


def avg(column: Column) -> ColumnAggregate:
    """The mean of the values; missing values are ignored."""
    return Avg(column_name(column, "avg"))


def min(column: Column) -> ColumnAggregate:
    """The smallest value."""
    return Min(column_name(column, "min"))


def max(column: Column) -> ColumnAggregate:
    """The largest value."""
    return Max(column_name(column, "max"))


def stddev(column: Column) -> ColumnAggregate:
    """The sample standard deviation: divided by n - 1, missing for fewer than two values."""
    return Stddev(column_name(column, "stddev"))


def first(column: Column) -> ColumnAggregate:
    """The value of the row that starts first."""
    return First(column_name(column, "first"))


def last(column: Column) -> ColumnAggregate:
    """The value of the row that starts last."""
    return Last(column_name(column, "last"))


def quantile(column: Column, q: float) -> ColumnAggregate:
    """The smallest value that at least the share q of the values does not exceed."""
    if isinstance(q, bool) or not isinstance(q, int | float):
        raise QueryError(f"quantile({column!r}, {q!r}): the share must be a number between 0 and 1, such as 0.95")
    return Quantile(column_name(column, "quantile"), q)


def median(column: Column) -> ColumnAggregate:
    """The smallest value that at least half of the values do not exceed."""
    return Quantile(column_name(column, "median"), 0.5)


def count_distinct(column: Column) -> ColumnAggregate:
    """The number of different values; missing values are ignored."""
    return CountDistinct(column_name(column, "count_distinct"))


def mode(column: Column) -> ColumnAggregate:
    """The value that occurs most often; the smallest of several."""
    return Mode(column_name(column, "mode"))


def aggregate(*columns: Column, function: Callable[[pl.DataFrame], Any], dtype: Any = pl.Float64) -> ColumnAggregate:
    """`function` of the rows of each snapshot, passed as a frame of these columns."""
    what = f"aggregate(dtype={dtype!r})"
    (kind,) = as_schema({"result": dtype}, what).values()
    if isinstance(kind, pl.List) and kind.inner == pl.Null():
        raise QueryError(f"{what}: declare the type of the list's values, such as dtype=pl.List(pl.Float64)")
    return UserDefined("", column_names(columns, "aggregate"), function, kind)
