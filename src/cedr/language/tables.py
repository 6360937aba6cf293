"""SELECT ... FROM: tables that change over time, compiled to the operators of the stream API.

The clauses are compiled in their logical order: FROM with its windows and joins, WHERE, GROUP BY, HAVING, SELECT,
DISTINCT, and finally UNION, EXCEPT and INTERSECT.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import polars as pl

from cedr.language.calls import projected, restricted
from cedr.language.grouping import aggregates_in, grouped
from cedr.language.names import Names
from cedr.language.table_scope import TableScope
from cedr.plan.nodes.join import How
from cedr.stream import Stream
from cedr.syntax import tree
from cedr.syntax.errors import LanguageError, located
from cedr.syntax.scalars import condition
from cedr.syntax.show import show


class Tables:
    """Compiles SELECTs. The same table with the same window is one stream, however often it is used."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._made: dict[tree.ParsedTable, Stream] = {}

    def compile(self, node: tree.ParsedSelect | tree.ParsedCompound) -> Stream:
        if isinstance(node, tree.ParsedSelect):
            return self.select(node)
        left, right = self.compile(node.left), self.compile(node.right)
        with located(node.right.at):
            if node.keyword == "UNION":
                return left.union(right)
            return left.difference(right) if node.keyword == "EXCEPT" else left.intersect(right)

    def select(self, node: tree.ParsedSelect) -> Stream:
        scope = self.joined(node)
        if node.where is not None:
            scope.stream = restricted(scope.stream, node.where, scope)
        if node.group_by or aggregates_in(node):
            stream = grouped(node, scope)
        elif node.having is not None:
            raise LanguageError("HAVING requires GROUP BY or an aggregate; without them, use WHERE", node.having.at)
        else:
            stream = projected(scope.stream, [one for item in node.items for one in expanded(item, scope)], scope)
        return stream.distinct() if node.distinct else stream

    @contextmanager
    def reading(self, name: str, stream: Stream, at: tree.TextPosition) -> Iterator[None]:
        """Within the context, a table of this name is this stream."""
        with self.names.meaning(name, stream, at):
            yield
        self._made = {table: made for table, made in self._made.items() if table.name != name}

    # --- FROM and JOIN ---------------------------------------------------------------------------------------------

    def joined(self, node: tree.ParsedSelect) -> TableScope:
        stream = self.table(node.table)
        scope = TableScope(stream, {node.table.alias or node.table.name: {name: name for name in stream.columns}})
        for join in node.joins:
            self.join(join, scope)
        return scope

    def table(self, node: tree.ParsedTable) -> Stream:
        if node not in self._made:
            stream = self.names.find(node.name, node.at, "stream or event type").as_stream()
            self._made[node] = stream if node.window is None else windowed(stream, node.window)
        return self._made[node]

    def join(self, node: tree.ParsedJoin, scope: TableScope) -> None:
        """Equalities between the two sides are the keys; the other conditions of ON are evaluated for each pair."""
        name = node.table.alias or node.table.name
        if name in scope.tables:
            raise LanguageError(f"two tables are called {name!r}; name one of them with AS", node.table.at)
        other = self.table(node.table)
        suffix, how = f"_{name}", cast(How, node.how.lower())
        right = TableScope(other, {name: {column: column for column in other.columns}})
        parts = [(part, key_pair(part, scope, right)) for part in tree.conjuncts(node.on)]
        keys = [pair for _, pair in parts if pair]
        rest = [part for part, pair in parts if not pair]
        left_on, right_on = [one for one, _ in keys], [two for _, two in keys]
        left_columns = set(scope.stream.columns)
        visible = {c: f"{c}{suffix}" if c in left_columns else c for c in other.columns}
        visible |= dict(zip(right_on, left_on, strict=True))
        if how in ("left", "full"):
            other = self.apart(scope, other, keys, visible, name, how)
        with located(node.at):
            pairs = scope.stream.join(other, left_on=left_on, right_on=right_on, suffix=suffix)
        both = TableScope(pairs, {**scope.tables, name: visible})
        residual = [condition(part, both).expression for part in rest]
        with located(node.at):
            scope.stream = scope.stream.join(
                other,
                left_on=left_on,
                right_on=right_on,
                how=how,
                suffix=suffix,
                where=pl.all_horizontal(*residual) if residual else None,
            )
        if how not in ("semi", "anti"):
            scope.tables[name] = visible

    def apart(
        self,
        scope: TableScope,
        other: Stream,
        keys: list[tuple[str, str]],
        visible: dict[str, str],
        name: str,
        how: How,
    ) -> Stream:
        """Give each side of an outer join its own columns for the keys, which are missing where that side is.

        The join itself has one column for both. A key without a table name means that column, if the key has the same
        name on both sides.
        """
        copies = {two: f"_{name}_{two}" for _, two in keys}
        left = {one: f"_{name}_of_{one}" for one, _ in keys} if how == "full" else {}
        for one, two in keys:
            sides = {left.get(one, one), copies[two]}
            for columns in scope.tables.values():
                if columns.get(two) == one:
                    scope.keys[two] = one, sides
        visible |= copies
        scope.copies |= {copy: column for columns in (copies, left) for column, copy in columns.items()}
        for columns in scope.tables.values():
            columns |= {column: left[actual] for column, actual in columns.items() if actual in left}
        if left:
            scope.stream = scope.stream.with_columns(**{copy: pl.col(one) for one, copy in left.items()})
        return other.with_columns(**{copy: pl.col(two) for two, copy in copies.items()}) if copies else other


def key_pair(node: tree.ParsedScalar, left: TableScope, right: TableScope) -> tuple[str, str] | None:
    """The two columns of `a.x = b.y`, that of the left side first; None if their types differ."""
    match node:
        case tree.ParsedBinary("=", tree.ParsedColumn() as one, tree.ParsedColumn() as two):
            for first, second in ((one, two), (two, one)):
                if owns(left, first) and owns(right, second) and not (owns(right, first) and first.variable is None):
                    key = left.name_of(first), right.name_of(second)
                    return key if left.columns[key[0]] == right.columns[key[1]] else None
    return None


def owns(scope: TableScope, node: tree.ParsedColumn) -> bool:
    tables = scope.tables if node.variable is None else {node.variable: scope.tables.get(node.variable, {})}
    return any(node.name in columns for columns in tables.values())


def windowed(stream: Stream, node: tree.ParsedWindow) -> Stream:
    if node.zone is not None:
        return on_calendar(stream, node, node.zone)
    for part in (node.length, node.every):
        if isinstance(part, tree.ParsedMonths):
            raise LanguageError("months differ in length; add the time zone of the calendar: ZONE 'UTC'", part.at)
    assert not isinstance(node.length, tree.ParsedMonths)
    length = whole_length(node.length)
    with located(node.at):
        match node.keyword:
            case "SLIDING":
                return stream.sliding(length)
            case "TUMBLING":
                return stream.tumbling(length)
            case "SESSION":
                return stream.session(length, node.by)
        every = node.every or node.length
        assert not isinstance(every, tree.ParsedMonths)
        return stream.hopping(length, whole_length(every))


def on_calendar(stream: Stream, node: tree.ParsedWindow, zone: tree.ParsedZone) -> Stream:
    """Windows of days, weeks or months in a time zone."""
    offset = 0 if zone.offset is None else whole_length(zone.offset)
    size = show(node.length)
    with located(zone.at):
        if node.every is None:
            return stream.tumbling(size, offset, zone.name)
        return stream.hopping(size, show(node.every), offset, zone.name)


def whole_length(node: tree.ParsedNumber | tree.ParsedLength) -> int:
    if not isinstance(node.value, int):
        raise LanguageError("a duration without a unit must be a whole number of chronons", node.at)
    return node.value


def expanded(item: tree.ParsedItem, scope: TableScope) -> list[tree.ParsedItem]:
    """`*` and `t.*` as the columns they mean, each once."""
    star = item.value
    if not isinstance(star, tree.ParsedStar):
        return [item]
    if item.alias:
        raise LanguageError("* means several columns, so it cannot have one name", item.at)
    tables = {star.variable: scope.table(star)} if star.variable else scope.tables
    found = {actual: (t, name) for t, columns in reversed(tables.items()) for name, actual in columns.items()}
    columns: list[tuple[str | None, str, str]] = []
    for actual in scope.stream.columns:
        shared = None if star.variable else scope.shared(actual)
        if shared is not None:
            columns.append((None, shared, actual))
        elif actual in found and (star.variable or not scope.hidden(actual)):
            columns.append((*found[actual], scope.copies.get(actual, actual)))
    return [tree.ParsedItem(tree.ParsedColumn(t, name, at=item.at), alias, at=item.at) for t, name, alias in columns]
