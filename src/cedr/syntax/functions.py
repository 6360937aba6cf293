"""The functions of scalar expressions: the kinds of their arguments, and their polars expressions.

A kind is one of `values.KINDS`, `any`, or `same`: that of the first argument.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from cedr.plan import aggregates
from cedr.syntax import tree
from cedr.syntax.errors import LanguageError, did_you_mean, listed
from cedr.syntax.show import show
from cedr.syntax.values import KINDS, Value, alike


@dataclass(frozen=True)
class Function:
    kinds: tuple[str, ...]
    build: Callable[..., pl.Expr]
    least: int
    repeats: bool = False
    """Whether the last argument may be repeated."""


def function(kinds: str, build: Callable[..., pl.Expr], least: int | None = None) -> Function:
    names = kinds.replace("...", "").split()
    return Function(tuple(names), build, len(names) if least is None else least, kinds.endswith("..."))


def rounded(x: pl.Expr, digits: pl.Expr | None = None) -> pl.Expr:
    return x.round(0) if digits is None else (x * 10.0**digits).round(0) / 10.0**digits


def different(x: pl.Expr, y: pl.Expr) -> pl.Expr:
    """A constant goes to the right: with one on the left, polars may return a single row."""
    return x.ne_missing(y) if x.meta.root_names() else y.ne_missing(x)


def part(text: pl.Expr, start: pl.Expr, length: pl.Expr | None = None) -> pl.Expr:
    """From the `start`-th character on, counted from 1."""
    return text.str.slice(start - 1) if length is None else text.str.slice(start - 1, length)


FUNCTIONS = {
    "abs": function("number", lambda x: x.abs()),
    "round": function("number number", rounded, least=1),
    "floor": function("number", lambda x: x.floor()),
    "ceil": function("number", lambda x: x.ceil()),
    "sqrt": function("number", lambda x: x.sqrt()),
    "exp": function("number", lambda x: x.exp()),
    "ln": function("number", lambda x: x.log()),
    "log10": function("number", lambda x: x.log10()),
    "power": function("number number", lambda x, y: x**y),
    "mod": function("number number", lambda x, y: x % y),
    "sign": function("number", lambda x: x.sign()),
    "least": function("any same...", lambda *xs: pl.min_horizontal(*xs)),
    "greatest": function("any same...", lambda *xs: pl.max_horizontal(*xs)),
    "coalesce": function("any same...", lambda *xs: pl.coalesce(*xs), least=1),
    "nullif": function("any same", lambda x, y: pl.when(different(x, y)).then(x)),
    "upper": function("text", lambda x: x.str.to_uppercase()),
    "lower": function("text", lambda x: x.str.to_lowercase()),
    "trim": function("text", lambda x: x.str.strip_chars()),
    "length": function("text", lambda x: x.str.len_chars().cast(pl.Int64)),
    "substring": function("text number number", part, least=2),
    "replace": function("text text text", lambda x, old, new: x.str.replace_all(old, new, literal=True)),
    "concat": function("text text...", lambda *xs: pl.concat_str(*xs), least=1),
    "starts_with": function("text text", lambda x, y: x.str.starts_with(y)),
    "ends_with": function("text text", lambda x, y: x.str.ends_with(y)),
    "contains": function("text text", lambda x, y: x.str.contains(y, literal=True)),
    "year": function("time", lambda x: x.dt.year().cast(pl.Int64)),
    "month": function("time", lambda x: x.dt.month().cast(pl.Int64)),
    "day": function("time", lambda x: x.dt.day().cast(pl.Int64)),
    "hour": function("time", lambda x: x.dt.hour().cast(pl.Int64)),
    "minute": function("time", lambda x: x.dt.minute().cast(pl.Int64)),
    "second": function("time", lambda x: x.dt.second().cast(pl.Int64)),
    "timestamp": function("number", lambda x: x.cast(pl.Int64).cast(pl.Datetime("us"))),
}

AGGREGATES = (*aggregates.BY_NAME, "quantile")


def call(node: tree.ParsedCall, arguments: Sequence[Value]) -> pl.Expr:
    """The function applied to its arguments, or an error that names the invalid one."""
    definition = FUNCTIONS[node.name]
    fitting = alike_all(arguments) if "same" in definition.kinds else arguments
    for number, value in enumerate(fitting):
        check_kind(node, definition.kinds[min(number, len(definition.kinds) - 1)], value, fitting[0])
    return definition.build(*(v.expression for v in fitting))


def alike_all(arguments: Sequence[Value]) -> list[Value]:
    """Constants of time are converted to the type of the first argument that is not such a constant."""
    times = (tree.ParsedLength, tree.ParsedTimestamp)
    first = next((a for a in arguments if not isinstance(a.written, times)), arguments[0])
    return [alike(a, first)[0] for a in arguments]


def check_call(node: tree.ParsedCall) -> None:
    """Check that the function exists and takes this number of arguments."""
    name = node.name.upper()
    if node.name in AGGREGATES:
        raise LanguageError(
            f"{name} is an aggregate; it is allowed in OUTPUT, SELECT and HAVING, but not in WHERE or inside another "
            "aggregate",
            node.at,
        )
    if node.name not in FUNCTIONS:
        functions = sorted(f.upper() for f in FUNCTIONS)
        hint = did_you_mean(name, functions)
        raise LanguageError(f"there is no function {name}{hint} (functions: {', '.join(functions)})", node.at)
    definition, given = FUNCTIONS[node.name], len(node.arguments)
    least, most = definition.least, len(definition.kinds)
    if given < least or (given > most and not definition.repeats):
        required = f"at least {least}" if definition.repeats else listed(map(str, range(least, most + 1)))
        raise LanguageError(f"{name} takes {required} argument{'' if required == '1' else 's'}, not {given}", node.at)


def check_kind(node: tree.ParsedCall, kind: str, value: Value, first: Value) -> None:
    required = first.kind if kind == "same" else kind
    if kind != "any" and value.kind != required and "missing" not in (value.kind, required):
        raise LanguageError(
            f"{node.name.upper()} takes {KINDS.get(required, required)} here, but {value}: {show(node)}",
            value.written.at,
        )
