"""Schemas, checked while a query is written: every mistake names what the user wrote and what would be right."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import polars as pl
from polars.exceptions import ColumnNotFoundError, PolarsError

from cedr.temporal.errors import QueryError

Schema = dict[str, pl.DataType]

DEEPEST = 1_000
"""Maximum depth of an expression."""

RESERVED = ("_vs", "_ve_old", "_ve_new")
"""The names of the times inside chunks."""


def as_schema(columns: Mapping[str, Any], what: str) -> Schema:
    """Names and types, where a type is a polars or a plain Python type."""
    try:
        schema = dict(pl.DataFrame(schema=dict(columns)).schema)
    except (PolarsError, TypeError, ValueError) as e:
        raise QueryError(f"{what}: {first_line(e)}; a type is a Python type such as str or a polars type") from None
    if taken := [name for name in schema if name in RESERVED]:
        raise QueryError(f"{what}: the column name {taken[0]!r} is reserved by cedr; rename the column")
    if unknown := [name for name, kind in schema.items() if kind in (pl.Unknown, pl.Object)]:
        raise QueryError(f"{what}: column {unknown[0]!r} has no type that can be stored; give it a polars type")
    return schema


def column_names(columns: Any, what: str) -> tuple[str, ...]:
    """A name or several; `pl.col("name")` is a name, too."""
    if isinstance(columns, str | pl.Expr) or not isinstance(columns, Iterable):
        columns = (columns,)
    return tuple(column_name(column, what) for column in columns)


def column_name(column: Any, what: str) -> str:
    if isinstance(column, str):
        return column
    if not isinstance(column, pl.Expr):
        raise QueryError(f'{what}: {column!r} is a {type(column).__name__}; write the name of a column, such as "load"')
    if column.meta.is_column():
        return column.meta.output_name()
    raise QueryError(
        f"{what}: {show_expression(column)} is an expression; name a column, or compute one first: "
        "stream.with_columns(name=...)"
    )


def check_columns(names: Iterable[str], schema: Mapping[str, Any], what: str) -> None:
    for name in names:
        if name not in schema:
            raise QueryError(unknown_column(name, schema, what))


def unknown_column(name: str, schema: Mapping[str, Any], what: str) -> str:
    near = get_close_matches(name, schema, n=1) or [n for n in schema if n.lower() == name.lower()]
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{what}: no column {name!r}{hint} (columns: {', '.join(schema) or 'none'})"


def check_predicate(predicate: pl.Expr, schema: Schema, what: str) -> None:
    """A truth value of one row."""
    check_row_wise([predicate], schema, what)
    evaluate(lambda frame: frame.filter(predicate), schema, what)


def project_schema(expressions: Sequence[pl.Expr], schema: Schema, what: str) -> Schema:
    """What the expressions yield, after checking them."""
    check_row_wise(expressions, schema, what)
    return dict(evaluate(lambda frame: frame.select(*expressions), schema, what).schema)


def check_row_wise(expressions: Sequence[pl.Expr], schema: Schema, what: str) -> None:
    """A stream comes in pieces, so an expression must need one row only."""
    for e in expressions:
        check_depth(e, what)
        check_columns(roots(e, schema), schema, what)
        if not row_wise(e, schema):
            raise QueryError(
                f"{what}: {show_expression(e)} uses several rows, but expressions on a stream see one row; "
                "use a window and group_by(...).agg(...) for values over many events"
            )


def check_depth(expression: pl.Expr, what: str) -> None:
    """Polars needs minutes for expressions some thousand steps deep, and at some depth more stack than there is."""
    rest = [(expression, 1)]
    while rest:
        part, depth = rest.pop()
        if depth > DEEPEST:
            raise QueryError(
                f"{what[:100]}…: the expression is nested deeper than {DEEPEST} steps; for many alternatives use "
                'pl.col("column").is_in([...]), or a join with a table of them'
            )
        rest += [(operand, depth + 1) for operand in part.meta.pop()]


def row_wise(expression: pl.Expr, schema: Schema) -> bool:
    return all(separable(part) for part in parts(expression)) and keeps_length(expression, schema)


def parts(expression: pl.Expr) -> Iterator[pl.Expr]:
    """The expression and all it is made of; polars' own question looks at the outermost step only.

    Without recursion, because a generated condition may be thousands of steps deep."""
    rest = [expression]
    while rest:
        yield (part := rest.pop())
        rest += part.meta.pop()


def separable(expression: pl.Expr) -> bool:
    try:
        if expression.meta.is_literal():  # of one value, such as the list of an IN in SQL text
            return pl.select(expression).height == 1
        return expression.meta.is_row_separable()
    except PolarsError:  # a Python function, or several columns at once: polars does not know
        return True


def keeps_length(expression: pl.Expr, schema: Schema) -> bool:
    try:
        return expression.meta.is_scalar() or expression.meta.is_length_preserving()
    except PolarsError:
        pass
    try:
        return pl.DataFrame(schema=schema).select(expression).height == 0
    except PolarsError:
        return True  # the evaluation that follows reports what is wrong


def roots(expression: pl.Expr, schema: Mapping[str, Any]) -> list[str]:
    """The columns an expression reads; all of them when it names them by pattern."""
    try:
        if expression.meta.has_multiple_outputs():
            return list(schema)
        return list(dict.fromkeys(expression.meta.root_names()))
    except PolarsError:
        return list(schema)


def evaluate(query: Any, schema: Schema, what: str) -> pl.DataFrame:
    """The query on no rows: polars checks names and types and returns those of the result."""
    try:
        result: pl.DataFrame = query(pl.DataFrame(schema=schema).lazy()).collect()
    except ColumnNotFoundError as e:
        name = str(e).partition('"')[2].partition('"')[0]
        raise QueryError(unknown_column(name, schema, what)) from None
    except PolarsError as e:
        raise QueryError(f"{what}: {first_line(e)}{hint(e)} (columns: {show_schema(schema)})") from None
    return result


def made_alike(name: str, found: pl.DataType, wanted: pl.DataType) -> str:
    """An expression that makes a column of one type comparable with columns of another."""
    column = f"pl.col({name!r})"
    if isinstance(found, pl.Datetime) and isinstance(wanted, pl.Datetime):
        unit = "" if found.time_unit == wanted.time_unit else f".dt.cast_time_unit({wanted.time_unit!r})"
        if found.time_zone == wanted.time_zone:
            return column + unit
        step = "convert_time_zone" if found.time_zone and wanted.time_zone else "replace_time_zone"
        return f"{column}{unit}.dt.{step}({wanted.time_zone!r})"
    if isinstance(found, pl.Duration) and isinstance(wanted, pl.Duration):
        return f"{column}.dt.cast_time_unit({wanted.time_unit!r})"
    kind = "String" if isinstance(wanted, pl.Enum | pl.Categorical) else str(wanted)
    return f"{column}.cast(pl.{kind})"


ZONES = (
    "; times with a zone and times without one, or with another, cannot be compared: use "
    'dt.replace_time_zone("...") on those without, dt.convert_time_zone("...") on the others'
)


def hint(error: PolarsError) -> str:
    return ZONES if str(error).count("Datetime(") > 1 else ""


def first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def show_schema(schema: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in schema.items())


def show_expression(expression: pl.Expr) -> str:
    """As polars prints it, without the types of literals."""
    return str(expression).replace("dyn int: ", "").replace("dyn float: ", "")


def conjuncts(predicate: pl.Expr) -> list[pl.Expr]:
    """The parts of `a & b & c`, each of which must hold, in their order."""
    found, rest = [], [predicate]
    while rest:
        part = rest.pop()
        operands = part.meta.pop() if str(part).startswith("[") and " & " in str(part) else []
        if len(operands) == 2 and (operands[1] & operands[0]).meta.eq(part):
            rest += operands  # the left one is the last of them
        else:
            found.append(part)
    return found
