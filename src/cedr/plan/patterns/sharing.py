"""Which parts of a pattern are the same but for the names of their variables, so that one is computed for all of them.

The same are parts with the same operators, scopes, event types, selections and conditions, where a variable counts as
its place in the part; a variable from outside counts as itself. They must look at the same events, too: where WHERE
ties what is forbidden to what is kept, each instance has events around it of its own. A part that consumes is like no
other: what it uses up is its own affair, and is remembered from a time on that depends on its position.
"""

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from cedr.plan.patterns.keys import Key
from cedr.plan.patterns.parts import PatternPart, parts_of
from cedr.plan.patterns.tree import Condition, CorrelationKey, EventType, Pattern, Predicate


def parts_under(key: Key, pattern: Pattern, where: Sequence[Condition]) -> PatternPart:
    """The parts of a pattern over events kept by a key, which replaces some of the conditions."""
    predicates = tuple(c for c in where if isinstance(c, Predicate) and all(c is not r for r in key.replaced))
    root = parts_of(pattern, predicates, bool(unique(where)))
    share(root, key.attributes)
    return root


def unique(where: Sequence[Condition]) -> list[str]:
    """The attributes in which all events must differ."""
    return [c.attribute for c in where if isinstance(c, CorrelationKey) and c.mode == "UNIQUE"]


def share(root: PatternPart, keys: Sequence[tuple[str, ...]]) -> None:
    """Set for each part which part is computed in its place; `keys` are the attributes of each event type's key."""
    bits: dict[Hashable, int] = {}
    for leaf in root.leaves():
        leaf.bit = bits.setdefault(acceptance(leaf, keys[leaf.leaf]), leaf.leaf)
    first: dict[Hashable, PatternPart] = {}
    for part, events in with_events(root, root.number):
        if any(p.consumes for p in part.walk()):
            continue
        same = first.setdefault((events, shape(part)), part)
        if same is not part:
            part.same_as, same.repeated = same, True


def with_events(part: PatternPart, events: int) -> Iterator[tuple[PatternPart, int]]:
    """All parts, in the order in which they are computed, with a number for the events each is looked for in."""
    yield part, events
    for child in (*part.positive, *part.counted):
        yield from with_events(child, events)
    for child in part.negated:
        yield from with_events(child, child.number if part.bound else events)


# --- what makes parts the same ---------------------------------------------------------------------------------------


def acceptance(leaf: PatternPart, key: tuple[str, ...]) -> Hashable:
    """What decides which events an event type takes, and where they are listed."""
    assert isinstance(leaf.pattern, EventType)
    where = () if leaf.pattern.where is None else same_expression(leaf.pattern.where, {})
    return leaf.pattern.port, key, where, same_predicates(leaf.at_entry, places(leaf))


def shape(part: PatternPart) -> Hashable:
    """All that decides what a part finds in a set of events."""
    own = places(part)
    return tuple((kind(p), modes(p), same_predicates(p.predicates, own)) for p in part.walk())


def places(part: PatternPart) -> dict[str, int]:
    """The variables in a part by their place, however deep."""
    return {p.pattern.var: place for place, p in enumerate(part.walk()) if p.pattern.var}


def kind(part: PatternPart) -> Hashable:
    """The operator or event type with its numbers, and how many parameters it has."""
    accepts = (part.pattern.name, part.bit) if isinstance(part.pattern, EventType) else ()
    return type(part.pattern), accepts, part.pattern.numbers, len(part.positive), len(part.counted)


def modes(part: PatternPart) -> Hashable:
    """Which of its parameters' instances are selected. How a part is selected itself is for the part around it."""
    return tuple(p.pattern.selection for p in part.positive)


def same_predicates(predicates: Iterable[Predicate], own: Mapping[str, int]) -> Hashable:
    """Predicates in any order, but for the names of variables."""
    return tuple(sorted((concerns(p, own), same_expression(p.expression, own)) for p in predicates))


def concerns(predicate: Predicate, own: Mapping[str, int]) -> str:
    """The variables that must have a value for a predicate to be evaluated."""
    return json.dumps(sorted((own.get(v, -1), "" if v in own else v) for v in set(predicate.variables)))


def same_expression(expression: pl.Expr, own: Mapping[str, int]) -> str:
    """An expression as text that is the same for the same expression, but for the names of variables."""
    try:
        written = json.loads(expression.meta.serialize(format="json"))
        return json.dumps(placed(written, own), sort_keys=True)
    except (PolarsError, NotDescribableError):
        return f"only {id(expression)}"


class NotDescribableError(Exception):
    """Something in an expression cannot be written down, so the expression is not known to be the same as any other."""


def placed(tree: Any, own: Mapping[str, int]) -> Any:
    match tree:
        case {"Datetime": [*words, None]}:  # without a time zone
            return {"Datetime": words}
        case None:  # often an infinity or NaN, which JSON does not distinguish
            raise NotDescribableError
        case {"Column": str(name), **rest} if not rest:
            variable, _, attribute = name.partition(".")
            return {"Column": [own.get(variable, variable), attribute]}
        case dict():
            return {word: placed(inner, own) for word, inner in tree.items()}
        case list():
            return [placed(inner, own) for inner in tree]
    return tree
