"""Typed values: a scalar expression in polars, its type, and the description of the type for users.

A constant duration or timestamp adapts to the other operand: combined with a timestamp it is one of polars, combined
with a whole number (such as `x.Vs`) it is a number of chronons.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

import polars as pl
from polars.exceptions import PolarsError

from cedr.plan.schema import first_line
from cedr.syntax import tree
from cedr.syntax.errors import LanguageError
from cedr.syntax.show import show
from cedr.temporal.duration import RealLength

KINDS = {
    "number": "a number",
    "text": "text",
    "truth": "a truth value",
    "time": "a timestamp",
    "length": "a duration",
    "missing": "missing",
}

collected: ContextVar[list[RealLength] | None] = ContextVar("collected", default=None)


@contextmanager
def lengths_as_numbers() -> Iterator[list[RealLength]]:
    """The lengths that are compiled inside to plain numbers of chronons. A polars expression does not show them, and
    they are wrong where numbers count something else."""
    found: list[RealLength] = []
    token = collected.set(found)
    try:
        yield found
    finally:
        collected.reset(token)


@dataclass(frozen=True)
class Value:
    """An expression with its type and its syntax."""

    expression: pl.Expr
    dtype: pl.DataType
    written: tree.ParsedScalar

    @property
    def kind(self) -> str:
        return kind_of(self.dtype)

    def __str__(self) -> str:
        """`x.load is Float64, a number`; for constants only the kind."""
        if isinstance(
            self.written,
            tree.ParsedText
            | tree.ParsedNumber
            | tree.ParsedLength
            | tree.ParsedTimestamp
            | tree.ParsedTruth
            | tree.ParsedNull,
        ):
            return f"{show(self.written)} is {KINDS[self.kind]}"
        kind = KINDS.get(self.kind)
        return f"{show(self.written)} is {self.dtype}" + (f", {kind}" if kind else "")


def kind_of(dtype: pl.DataType) -> str:
    if dtype.is_numeric():
        return "number"
    for kind, types in {
        "text": (pl.String, pl.Categorical, pl.Enum),
        "truth": (pl.Boolean,),
        "time": (pl.Datetime, pl.Date),
        "length": (pl.Duration,),
        "missing": (pl.Null,),
    }.items():
        if isinstance(dtype, types):
            return kind
    return str(dtype)


def typed(expression: pl.Expr, columns: Mapping[str, pl.DataType], written: tree.ParsedScalar) -> Value:
    """The value with the type polars gives it."""
    try:
        named = pl.LazyFrame(schema={n: columns[n] for n in expression.meta.root_names()})
        return Value(expression, named.select(expression.alias("value")).collect_schema()["value"], written)
    except PolarsError as e:
        raise LanguageError(f"{show(written)} cannot be computed: {first_line(e)}", written.at) from None


def constant(node: tree.ParsedScalar) -> Value | None:
    """The value of a constant; None if the node is not a constant."""
    match node:
        case tree.ParsedNumber():
            whole = isinstance(node.value, int)
            return Value(pl.lit(node.value), pl.Int64() if whole else pl.Float64(), node)
        case tree.ParsedText():
            return Value(pl.lit(node.value), pl.String(), node)
        case tree.ParsedTruth():
            return Value(pl.lit(node.value), pl.Boolean(), node)
        case tree.ParsedNull():
            return Value(pl.lit(None), pl.Null(), node)
        case tree.ParsedLength():
            return Value(chronons(node.value).cast(pl.Duration("us")), pl.Duration("us"), node)
        case tree.ParsedTimestamp():
            return Value(chronons(node.value).cast(pl.Datetime("us")), pl.Datetime("us"), node)
    return None


def chronons(value: int) -> pl.Expr:
    return pl.lit(value, pl.Int64)


def alike(left: Value, right: Value) -> tuple[Value, Value]:
    """Both values, with constants of time and different types of text converted to a common type."""
    left, right = fitted(left, right), fitted(right, left)
    if left.kind == right.kind == "text" and left.dtype != right.dtype:
        return as_text(left), as_text(right)
    return left, right


def fitted(value: Value, other: Value) -> Value:
    written = value.written
    if not isinstance(written, tree.ParsedLength | tree.ParsedTimestamp):
        return value
    if other.kind == "number":
        if isinstance(written, tree.ParsedLength) and (found := collected.get()) is not None:
            found.append(RealLength(written.value, show(written)))
        return replace(value, expression=chronons(written.value), dtype=pl.Int64())
    if isinstance(other.dtype, pl.Datetime) and other.dtype.time_zone and isinstance(written, tree.ParsedTimestamp):
        zoned = value.expression.dt.replace_time_zone("UTC").dt.convert_time_zone(other.dtype.time_zone)
        return replace(value, expression=zoned, dtype=other.dtype)
    return value


def as_text(value: Value) -> Value:
    if value.dtype == pl.String():
        return value
    return replace(value, expression=value.expression.cast(pl.String), dtype=pl.String())
