"""Resolution of the names in a query: given streams, events of a typed feed, and earlier statements.

A name is an earlier statement, a stream given by name, or the kind or name of a source. Any other name is a value of
the types column of the one feed that has one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl

from cedr.plan.nodes import Clip, Level, Lifetime, Node, Select, Source
from cedr.plan.nodes.versions import Versions
from cedr.plan.patterns.spec import VERSION
from cedr.plan.versions import contains_versions
from cedr.stream import Stream
from cedr.syntax.errors import LanguageError, did_you_mean
from cedr.syntax.tree import TextPosition
from cedr.temporal.errors import QueryError


@dataclass(frozen=True)
class Origin:
    """The source of a name's events: a stream, or those of its rows for which `where` holds."""

    stream: Stream
    where: pl.Expr | None = None
    types: str | None = None
    """The column that contains only the type."""

    @property
    def attributes(self) -> list[str]:
        header = VERSION if contains_versions(self.stream.plan) else ()
        return [name for name in self.stream.columns if name != self.types and name not in header]

    def as_stream(self) -> Stream:
        return self.stream if self.where is None else self.stream.where(self.where)


class Names:
    def __init__(self, streams: Sequence[Any], named: Mapping[str, Any]) -> None:
        self.feeds: list[tuple[Stream, str]] = []
        self.known: dict[str, Origin] = {}
        self.statement: str | None = None
        """The statement that is being compiled."""
        for number, stream in enumerate(streams):
            self._add(name_of(stream, number), stream, types_of(stream))
        for name, stream in named.items():
            if not isinstance(stream, Stream):
                raise QueryError(f"query({name}=…): {name} is a {type(stream).__name__}; it must be a stream")
            # A stream derived from a feed and given by name is an event type, not a feed.
            self._add(name, stream, types_of(stream) if isinstance(stream.plan, Source) else None)

    def _add(self, name: str | None, stream: Stream, types: str | None) -> None:
        if name is not None:
            if name in self.known:
                raise QueryError(f"query: two streams are called {name!r}; give one by another name, as other={name}")
            self.known[name] = Origin(stream)
        if types is not None and all(stream is not feed for feed, _ in self.feeds):
            self.feeds.append((stream, types))

    def define(self, name: str, stream: Stream, at: TextPosition) -> None:
        """Add the result of a statement, for later statements."""
        if name in self.known:
            raise LanguageError(f"there is a stream {name!r} already; give this one another name", at)
        self.known[name] = Origin(stream)

    @contextmanager
    def meaning(self, name: str, stream: Stream, at: TextPosition) -> Iterator[None]:
        """Within the context, the name means this stream."""
        self.define(name, stream, at)
        try:
            yield
        finally:
            del self.known[name]

    def find(self, name: str, at: TextPosition, what: str = "event type") -> Origin:
        if name in self.known:
            return self.known[name]
        if len(self.feeds) == 1:
            return self._of_feed(name, at, what)
        if len(self.feeds) > 1:
            columns = " and ".join(repr(types) for _, types in self.feeds)
            raise LanguageError(
                f"{name!r} could be a type of several feeds, by their columns {columns}; give its events by name: "
                f"{name}=feed.where(…)",
                at,
            )
        if name == self.statement:
            raise LanguageError(
                f"{name!r} is this statement itself; to let it read itself, write EVENT {name} RECURSIVE SELECT … "
                f"UNION SELECT … FROM {name} …",
                at,
            )
        hint = did_you_mean(name, self.known)
        raise LanguageError(f"there is no {what} {name!r}{hint} (known: {', '.join(self.known) or 'none'})", at)

    def _of_feed(self, name: str, at: TextPosition, what: str) -> Origin:
        """A value of the types column."""
        ((feed, types),) = self.feeds
        return Origin(feed, of_type(name, feed, types, at, what, self.known), types)


def of_type(name: str, feed: Stream, types: str, at: TextPosition, what: str, others: Iterable[str] = ()) -> pl.Expr:
    """The condition that an event has a type. If the column is an enum, other values are errors."""
    dtype = feed.schema[types]
    if isinstance(dtype, pl.Enum):
        values = dtype.categories.to_list()
        if name not in values:
            hint = did_you_mean(name, [*values, *others])
            raise LanguageError(f"there is no {what} {name!r}{hint} (column {types!r} has: {', '.join(values)})", at)
    elif not isinstance(dtype, pl.String | pl.Categorical):
        raise LanguageError(f"{name!r} is not a valid {what}: the types column {types!r} is {dtype}, not text", at)
    return pl.col(types) == name


def name_of(stream: Any, number: int) -> str | None:
    """The name of a stream that was given without one: its kind, or the name of its source."""
    if not isinstance(stream, Stream):
        raise QueryError(f"query: argument {number + 2} is a {type(stream).__name__}; it must be a stream")
    source = stream.plan
    if isinstance(source, Source):
        return source.kind or source.name
    if types_of(stream) is not None:
        return None
    raise QueryError(f"query: stream {number + 1} has no name; give it by name, as in query(text, busy=stream)")


def types_of(stream: Stream) -> str | None:
    """The column with the types of the events, if the payloads are unchanged."""
    node: Node = stream.plan
    while isinstance(node, Select | Level | Lifetime | Versions | Clip):
        node = node.inputs[0]
    return node.types if isinstance(node, Source) else None
