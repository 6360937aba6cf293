"""Stand-alone scalar expressions over the columns of a table: `time_hour + minute * 1 minute`."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from cedr.syntax import tree
from cedr.syntax.errors import LanguageError, did_you_mean
from cedr.syntax.parse import parse_scalar
from cedr.syntax.scalars import compiled
from cedr.syntax.values import Value, lengths_as_numbers
from cedr.temporal.duration import RealLength


@dataclass(frozen=True)
class ColumnScope:
    """Names are columns of one table."""

    columns: Mapping[str, pl.DataType]

    def column(self, node: tree.ParsedColumn) -> Value:
        name = node.name if node.variable is None else f"{node.variable}.{node.name}"
        if name not in self.columns:
            hint = did_you_mean(name, self.columns)
            raise LanguageError(f"there is no column {name!r}{hint} (columns: {', '.join(self.columns)})", node.at)
        return Value(pl.col(name), self.columns[name], node)

    def aggregate(self, node: tree.ParsedCall) -> Value | None:
        return None


@lru_cache(maxsize=1000)
def scalar_of(text: str) -> tree.ParsedScalar | None:
    """The text as an expression over columns; None if it is not one."""
    try:
        scalar = parse_scalar(text)
    except LanguageError:
        return None
    return scalar if columns_of(scalar) else None


def columns_of(scalar: tree.ParsedScalar) -> list[str]:
    """The columns it reads, each once."""
    found = [node for node in tree.walk(scalar) if isinstance(node, tree.ParsedColumn)]
    return list(dict.fromkeys(c.name if c.variable is None else f"{c.variable}.{c.name}" for c in found))


def over_columns(text: str, columns: Mapping[str, pl.DataType]) -> tuple[pl.Expr, list[RealLength]]:
    """The expression in polars and the lengths that are plain numbers in it, or a `LanguageError`."""
    try:
        with lengths_as_numbers() as lengths:
            return compiled(parse_scalar(text), ColumnScope(columns)).expression, lengths
    except LanguageError as e:
        raise e.within(text) from None
