"""Times, events, instances and conditions as text.

INSTALL x at 12:00:01 (Machine_Id=web1, load=0.2)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from cedr.lineage.definition import Question, TracedEventType, bound_in, text_of, value
from cedr.lineage.nearby import Nearby
from cedr.reference.patterns.instance import Instance
from cedr.reference.patterns.negation import ReferenceNegation
from cedr.reference.patterns.pattern import ReferencePattern, ReferenceScope
from cedr.reference.patterns.predicates import (
    ReferenceAttributeEqual,
    ReferenceCondition,
    ReferenceCorrelationKey,
    attribute,
)
from cedr.sources.user_times import as_user_times
from cedr.temporal.duration import show_duration
from cedr.temporal.time import INF, MIN
from cedr.temporal.time import show as show_time


@dataclass(frozen=True)
class Renderer:
    """Text for the user of one query; `scope` holds the events concerned."""

    nearby: Nearby
    scope: ReferenceScope

    # --- times ---------------------------------------------------------------------------------------------------

    def time(self, time: int) -> str:
        kind = self.nearby.observed.time_type
        if time in (INF, MIN) or kind == pl.Int64:
            return show_time(time)
        return str(as_user_times(pl.DataFrame({"t": [time]}), ["t"], kind)["t"][0])

    def length(self, length: int) -> str:
        """Whole numbers have no unit."""
        return show_duration(length) if self.nearby.observed.time_type != pl.Int64 else show_time(length)

    # --- events --------------------------------------------------------------------------------------------------

    @cached_property
    def types(self) -> dict[int, TracedEventType]:
        """An event type for each event."""
        return {i.id: leaf for leaf in self.nearby.leaves for i in self.scope.inputs.get(leaf.kind, [])}

    @cached_property
    def variables(self) -> set[str | None]:
        return {leaf.var for leaf in self.nearby.leaves}

    def variable(self, event: Instance, instance: Instance) -> str | None:
        """The variable an event has in an instance."""
        bound = (x for x, i in instance.bound.items() if i.id == event.id and x in self.variables)
        return next(bound, None)

    def name(self, event: Instance, instance: Instance) -> str:
        """The type of an event, and its variable."""
        parts = [str(self.types[event.id]), self.variable(event, instance)]
        return " ".join(dict.fromkeys(part for part in parts if part))

    def attributes(self, event: Instance) -> str:
        """The attributes of an event, without the columns that select its type."""
        leaf = self.types[event.id].source
        selecting = [] if leaf.where is None else leaf.where.meta.root_names()
        return pairs((name, text(given)) for name, given in event.payload.items() if name not in selecting)

    def event(self, event: Instance, instance: Instance) -> str:
        return f"{self.name(event, instance)} {self.life(event)} ({self.attributes(event)})"

    def life(self, event: Instance) -> str:
        """The lifetime; an event of one chronon is just there."""
        if event.ve == event.vs + 1:
            return f"at {self.time(event.vs)}"
        return f"from {self.time(event.vs)} to {self.time(event.ve)}"

    def events(self, instance: Instance) -> list[str]:
        """The events of an instance, in the order of time."""
        return [self.event(e, instance) for e in sorted(instance.leaves, key=lambda leaf: leaf.order)]

    # --- patterns ------------------------------------------------------------------------------------------------

    def pattern(self, pattern: ReferencePattern) -> str:
        """The operator with its numbers, or the event type; and its variable."""
        parts = [str(pattern)]
        n, w = getattr(pattern, "n", None), getattr(pattern, "w", None)
        parts += [] if n is None else [str(n)]
        parts += [] if w is None else [self.length(w)]
        if pattern.var and pattern.var != parts[0]:
            parts.append(pattern.var)
        return " ".join(parts)

    def forbidden(self, pattern: ReferenceNegation) -> str:
        """What a negation forbids: the pattern, and the conditions on its instances."""
        names = {p.var for p, _ in pattern.forbidden.walk() if p.var}
        conditions = [c for c in self.scope.where if isinstance(c, Question) and names & set(c.variables)]
        having = f" with {' and '.join(map(self.condition, conditions))}" if conditions else ""
        return self.pattern(pattern.forbidden) + having

    # --- conditions ----------------------------------------------------------------------------------------------

    def values(self, condition: ReferenceCondition, instance: Instance, context: tuple[Instance, ...] = ()) -> str:
        """The values that a condition was evaluated for."""
        if isinstance(condition, Question):
            bound = bound_in(instance, context)
            names = (name for name in condition.types if name.partition(".")[0] in bound)
            return pairs((name, self.value(name, value(bound, name))) for name in names)
        assert isinstance(condition, ReferenceCorrelationKey | ReferenceAttributeEqual)
        leaves = [leaf for i in (*context, instance) for leaf in i.leaves]
        given = [(self.name(leaf, instance), text(attribute(leaf, condition.attribute))) for leaf in leaves]
        if len({value for _, value in given}) == 1:
            return f"{condition.attribute}={given[0][1]}"
        return ", ".join(f"{value} in {name}" for name, value in given)

    def value(self, column: str, given: Any) -> str:
        return self.time(given) if column.partition(".")[2] in ("Vs", "Rt") else text(given)

    def condition(self, condition: ReferenceCondition) -> str:
        return text_of(condition)


def text(value: Any) -> str:
    return "missing" if value is None else repr(value) if isinstance(value, str) else str(value)


def pairs(named: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name}={value}" for name, value in named)
