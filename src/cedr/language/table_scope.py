"""Names in a SELECT: the columns of its tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from cedr.language import tree
from cedr.language.errors import LanguageError, did_you_mean, listed
from cedr.language.values import Value
from cedr.stream import Stream


@dataclass
class TableScope:
    """Of each table, by its name or alias, what its columns are called in the joined stream."""

    stream: Stream
    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    keys: dict[str, tuple[str, set[str]]] = field(default_factory=dict)
    """Keys of outer joins that both sides call alike: the column that has the key of whichever side is there, and the
    columns of the sides, which are missing where a side is."""
    copies: dict[str, str] = field(default_factory=dict)
    """What the columns of the sides are called in their tables."""

    def shared(self, actual: str) -> str | None:
        """The name under which both sides of an outer join know a key, if this column is that key."""
        return next((name for name, (key, _) in self.keys.items() if key == actual), None)

    def hidden(self, actual: str) -> bool:
        """Is it a side's own column for a key that both sides call alike?"""
        return actual in self.copies and any(actual in sides for _, sides in self.keys.values())

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        return self.stream.schema

    def column(self, node: tree.Column) -> Value:
        name = self.name_of(node)
        return Value(pl.col(name), self.columns[name], node)

    def name_of(self, node: tree.Column) -> str:
        """What a column is called in the stream."""
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
        known = dict.fromkeys(name for columns in tables.values() for name in columns)
        hint = did_you_mean(node.name, known)
        raise LanguageError(f"there is no column {node.name!r}{hint} (columns: {', '.join(known)})", node.at)

    def table(self, node: tree.Column | tree.Star) -> dict[str, str]:
        assert node.variable is not None
        if node.variable not in self.tables:
            hint = did_you_mean(node.variable, self.tables)
            raise LanguageError(
                f"there is no table {node.variable!r}{hint} (tables: {', '.join(self.tables)})", node.at
            )
        return self.tables[node.variable]

    def aggregate(self, node: tree.Call) -> Value | None:
        return None
