"""The functions of scalar expressions: which kinds of values they take, and what they are in polars.

A kind is one of `values.KINDS`, `any`, or `same`: like the first argument.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from cedr.language import tree
from cedr.language.errors import LanguageError, did_you_mean, listed
from cedr.language.show import show
from cedr.language.values import KINDS, Value, alike
from cedr.operators import aggregates


@dataclass(frozen=True)
class Function:
    kinds: tuple[str, ...]
    build: Callable[..., pl.Expr]
    least: int
    repeats: bool = False
    """Whether the last kind may stand any number of times."""


def function(kinds: str, build: Callable[..., pl.Expr], least: int | None = None) -> Function:
    words = kinds.replace("...", "").split()
    return Function(tuple(words), build, len(words) if least is None else least, kinds.endswith("..."))


def rounded(x: pl.Expr, digits: pl.Expr | None = None) -> pl.Expr:
    return x.round(0) if digits is None else (x * 10.0**digits).round(0) / 10.0**digits


def different(x: pl.Expr, y: pl.Expr) -> pl.Expr:
    """A constant goes to the right: with one on the left, polars may give one row for many."""
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


def call(node: tree.Call, arguments: Sequence[Value]) -> pl.Expr:
    """The function applied, or which argument it cannot take."""
    known = FUNCTIONS[node.name]
    fitting = alike_all(arguments) if "same" in known.kinds else arguments
    for number, value in enumerate(fitting):
        check_kind(node, known.kinds[min(number, len(known.kinds) - 1)], value, fitting[0])
    return known.build(*(v.expression for v in fitting))


def alike_all(arguments: Sequence[Value]) -> list[Value]:
    """Constants of time fit themselves to the first argument that is none."""
    times = (tree.Length, tree.Timestamp)
    first = next((a for a in arguments if not isinstance(a.written, times)), arguments[0])
    return [alike(a, first)[0] for a in arguments]


def check_known(node: tree.Call) -> None:
    """There is such a function, and it takes so many arguments."""
    name = node.name.upper()
    if node.name in AGGREGATES:
        raise LanguageError(
            f"{name} is about several events; it can stand in OUTPUT, SELECT and HAVING, but not in WHERE or inside "
            "another aggregate",
            node.at,
        )
    if node.name not in FUNCTIONS:
        functions = sorted(f.upper() for f in FUNCTIONS)
        hint = did_you_mean(name, functions)
        raise LanguageError(f"there is no function {name}{hint} (functions: {', '.join(functions)})", node.at)
    known, given = FUNCTIONS[node.name], len(node.arguments)
    most = len(known.kinds)
    if given < known.least or (given > most and not known.repeats):
        wanted = f"at least {known.least}" if known.repeats else listed(map(str, range(known.least, most + 1)))
        raise LanguageError(f"{name} takes {wanted} argument{'' if wanted == '1' else 's'}, not {given}", node.at)


def check_kind(node: tree.Call, kind: str, value: Value, first: Value) -> None:
    wanted = first.kind if kind == "same" else kind
    if kind != "any" and value.kind != wanted and "missing" not in (value.kind, wanted):
        raise LanguageError(
            f"{node.name.upper()} takes {KINDS.get(wanted, wanted)} here, but {value}: {show(node)}", value.written.at
        )
