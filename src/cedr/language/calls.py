"""Calls from the language to the stream API, whose errors are reported at the place in the query that caused them."""

from collections import Counter
from collections.abc import Sequence

import polars as pl

from cedr.language.output import output_name
from cedr.stream import Stream
from cedr.syntax import tree
from cedr.syntax.errors import LanguageError, located
from cedr.syntax.scalars import NameScope, compiled, condition


def selected(stream: Stream, named: dict[str, pl.Expr]) -> Stream:
    """A select that passes unchanged columns as plain columns; the stream itself if all are unchanged."""
    stays = [e.meta.is_column() and e.meta.output_name() == name for name, e in named.items()]
    if all(stays) and list(named) == stream.columns:
        return stream
    return stream.select(*(e if same else e.alias(name) for same, (name, e) in zip(stays, named.items(), strict=True)))


def restricted(stream: Stream, node: tree.ParsedScalar, scope: NameScope) -> Stream:
    predicates = [condition(part, scope).expression for part in tree.conjuncts(node)]
    with located(node.at):
        return stream.where(*predicates)


def projected(stream: Stream, items: Sequence[tree.ParsedItem], scope: NameScope) -> Stream:
    plain = Counter(item.value.name for item in items if not item.alias and isinstance(item.value, tree.ParsedColumn))
    named: dict[str, pl.Expr] = {}
    for item in items:
        name = output_name(item, plain)
        if name in named:
            raise LanguageError(f"two columns are called {name!r}; rename one with AS", item.at)
        named[name] = compiled(item.value, scope).expression
    with located(items[0].at):
        return selected(stream, named)
