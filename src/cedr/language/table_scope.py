"""Names in a SELECT: the columns of its tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from cedr.stream import Stream
from cedr.syntax import tree
from cedr.syntax.errors import LanguageError, did_you_mean, listed
from cedr.syntax.values import Value


@dataclass
class TableScope:
    """For each table, by its name or alias, the names of its columns in the joined stream."""

    stream: Stream
    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    keys: dict[str, tuple[str, set[str]]] = field(default_factory=dict)
    """Keys of outer joins with the same name on both sides: the column with the key of whichever side is present, and
    the columns of the sides, which are missing where that side is."""
    copies: dict[str, str] = field(default_factory=dict)
    """The names of the sides' columns in their tables."""

    def shared(self, actual: str) -> str | None:
        """The common name of a key of an outer join, if this column is that key."""
        return next((name for name, (key, _) in self.keys.items() if key == actual), None)

    def hidden(self, actual: str) -> bool:
        """Whether it is a side's own column for a key that has the same name on both sides."""
        return actual in self.copies and any(actual in sides for _, sides in self.keys.values())

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        return self.stream.schema

    def column(self, node: tree.ParsedColumn) -> Value:
        name = self.name_of(node)
        return Value(pl.col(name), self.columns[name], node)

    def name_of(self, node: tree.ParsedColumn) -> str:
        """The name of a column in the stream."""
        tables = self.tables if node.variable is None else {node.variable: self.table(node)}
        found = {t: columns[node.name] for t, columns in tables.items() if node.name in columns}
        if len(set(found.values())) == 1:
            return next(iter(found.values()))
        key, sides = self.keys.get(node.name, ("", set()))
        if found and sides.issuperset(found.values()):
            return key
        if found:
            choice = listed(f"{t}.{node.name}" for t in found)
            raise LanguageError(f"several tables have a column {node.name!r}; write {choice}", node.at)
        names = dict.fromkeys(name for columns in tables.values() for name in columns)
        hint = did_you_mean(node.name, names)
        raise LanguageError(f"there is no column {node.name!r}{hint} (columns: {', '.join(names)})", node.at)

    def table(self, node: tree.ParsedColumn | tree.ParsedStar) -> dict[str, str]:
        assert node.variable is not None
        if node.variable not in self.tables:
            hint = did_you_mean(node.variable, self.tables)
            raise LanguageError(
                f"there is no table {node.variable!r}{hint} (tables: {', '.join(self.tables)})", node.at
            )
        return self.tables[node.variable]

    def aggregate(self, node: tree.ParsedCall) -> Value | None:
        return None
