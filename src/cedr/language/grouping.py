"""GROUP BY and aggregates: each distinct aggregate becomes a column, which SELECT and HAVING then read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from cedr.language.calls import projected, restricted
from cedr.language.table_scope import TableScope
from cedr.plan.aggregates import BY_NAME, NUMBERS_ONLY, Count, Quantile
from cedr.stream import Stream
from cedr.syntax import tree
from cedr.syntax.errors import LanguageError, located
from cedr.syntax.functions import AGGREGATES
from cedr.syntax.scalars import compiled
from cedr.syntax.show import show
from cedr.syntax.values import Value


def aggregates_in(node: tree.ParsedSelect) -> list[tree.ParsedCall]:
    """The different aggregates of SELECT and HAVING."""
    places = [*(item.value for item in node.items), *([node.having] if node.having else [])]
    calls = (n for place in places for n in tree.walk(place) if isinstance(n, tree.ParsedCall) and n.name in AGGREGATES)
    return list(dict.fromkeys(calls))


@dataclass
class GroupScope:
    """Names after GROUP BY: the group's columns, and the aggregates."""

    stream: Stream
    before: TableScope
    groups: set[str]
    aggregates: dict[tree.ParsedCall, str] = field(default_factory=dict)

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        return self.stream.schema

    def column(self, node: tree.ParsedColumn) -> Value:
        name = self.before.name_of(node)
        if name not in self.groups:
            raise LanguageError(
                f"{show(node)} has many values in a group; add it to GROUP BY, or use an aggregate such as "
                f"MAX({show(node)})",
                node.at,
            )
        return Value(pl.col(name), self.columns[name], node)

    def aggregate(self, node: tree.ParsedCall) -> Value | None:
        if node not in self.aggregates:
            return None
        name = self.aggregates[node]
        return Value(pl.col(name), self.columns[name], node)


def grouped(node: tree.ParsedSelect, scope: TableScope) -> Stream:
    groups = list(dict.fromkeys(scope.name_of(column) for column in node.group_by))
    taken = set(scope.columns)
    arguments: dict[str, pl.Expr] = {}
    aggregates: dict[str, Any] = {}
    names: dict[tree.ParsedCall, str] = {}
    for number, call in enumerate(aggregates_in(node)):
        name = free_name(preferred_name(call, node), taken)
        names[call] = name
        aggregates[name] = made(call, scope, arguments, f"_argument_{number}")
    with located(node.at):
        stream = scope.stream.with_columns(**arguments) if arguments else scope.stream
        stream = stream.group_by(*groups).agg(**aggregates) if aggregates else stream.select(*groups).distinct()
    after = GroupScope(stream, scope, set(groups), names)
    if node.having is not None:
        after.stream = restricted(after.stream, node.having, after)
    for item in node.items:
        if isinstance(item.value, tree.ParsedStar):
            raise LanguageError("* cannot be used with GROUP BY or an aggregate; list the columns", item.at)
    return projected(after.stream, node.items, after)


def preferred_name(call: tree.ParsedCall, node: tree.ParsedSelect) -> str:
    """The alias of the item, if the aggregate is a whole item."""
    alias = next((item.alias for item in node.items if item.value == call and item.alias), None)
    return alias or call.name


def free_name(preferred: str, taken: set[str]) -> str:
    name, number = preferred, 1
    while name in taken:
        name, number = f"{preferred}_{number}", number + 1
    taken.add(name)
    return name


def made(call: tree.ParsedCall, scope: TableScope, arguments: dict[str, pl.Expr], name: str) -> Any:
    """The aggregate; an argument that is not a column becomes one first."""
    if call.name == "quantile":
        return quantile(call, scope, arguments, name)
    if len(call.arguments) != 1:
        raise LanguageError(f"{call.name.upper()} takes one argument, not {len(call.arguments)}", call.at)
    argument = call.arguments[0]
    if isinstance(argument, tree.ParsedStar):
        if call.name != "count":
            raise LanguageError(f"only COUNT takes *; write for example {call.name.upper()}(load)", argument.at)
        return Count()
    return BY_NAME[call.name](column(call, argument, scope, arguments, name))


def column(
    call: tree.ParsedCall, argument: tree.ParsedScalar, scope: TableScope, arguments: dict[str, pl.Expr], name: str
) -> str:
    value = compiled(argument, scope)
    if call.name in (*NUMBERS_ONLY, "median", "quantile") and value.kind != "number":
        raise LanguageError(f"{value}; {call.name.upper()} takes numbers", argument.at)
    if isinstance(argument, tree.ParsedColumn):
        return scope.name_of(argument)
    arguments[name] = value.expression
    return name


def quantile(call: tree.ParsedCall, scope: TableScope, arguments: dict[str, pl.Expr], name: str) -> Any:
    match call.arguments:
        case (argument, tree.ParsedNumber() as q) if 0 <= q.value <= 1:
            return Quantile(column(call, argument, scope, arguments, name), float(q.value))
    raise LanguageError("QUANTILE takes a value and a share from 0 to 1, as in QUANTILE(load, 0.95)", call.at)
