"""Conditions evaluated for instances: the columns they read are gathered only for the instances that have them."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from cedr.columnar.chunk import Times
from cedr.operators.patterns.headers import Headers
from cedr.operators.patterns.instances import Column, Columns, Instances, Mask, Scope
from cedr.plan.patterns.parts import PatternPart
from cedr.plan.patterns.tree import EventType, Predicate

Values = Callable[[PatternPart, str, Times], pl.Series]
"""An attribute of the events at some places, for an event type."""


class Questions:
    """`variables` are the parts by variable; `codes` the attributes that must differ, as numbers, -1 where missing."""

    def __init__(
        self, headers: Headers, variables: Mapping[str, PatternPart], values: Values, codes: Sequence[Times] = ()
    ) -> None:
        self.headers, self.variables, self.values, self.codes = headers, variables, values, codes

    def ask(self, predicates: Sequence[Predicate], found: Instances, scope: Scope) -> Instances:
        return found.where(self.holds(predicates, found, scope)) if predicates else found

    def holds(self, predicates: Sequence[Predicate], found: Instances, scope: Scope) -> Mask:
        result = np.ones(len(found), dtype=np.bool_)
        for predicate in predicates:
            parts = [self.variables[v] for v in dict.fromkeys(predicate.variables)]
            columns = with_context(found, scope, [c for p in parts for c in p.columns()])
            present = np.all([self.headers.present(p, columns) for p in parts], axis=0) & result
            if not present.any():
                continue
            columns = columns if present.all() else {c: a[present] for c, a in columns.items()}
            frame = pl.DataFrame([self.column(name, columns) for name in names_in(predicate.expression)])
            answer = frame.select(predicate.expression.fill_null(False).alias("holds"))["holds"]
            result[present] = answer.to_numpy()
        return result

    def column(self, name: str, columns: Columns) -> pl.Series:
        """The column `x.attribute` or `x.Vs` of instances that all have an x."""
        variable, _, attribute = name.partition(".")
        part = self.variables[variable]
        match attribute:
            case "Vs":
                return pl.Series(name, self.headers.start(part, columns))
            case "Rt":
                return pl.Series(name, self.headers.root(part, columns))
            case "Id":
                return pl.Series(name, self.headers.id(part, columns))
        assert isinstance(part.pattern, EventType)
        return self.values(part, attribute, columns[part.leaf]).alias(name)

    # --- CorrelationKey(a, UNIQUE) -------------------------------------------------------------------------------

    def unlike_context(self, found: Instances, scope: Scope) -> Instances:
        """Events that differ from all events around them."""
        if not self.codes or not scope.context:
            return found
        columns = with_context(found, scope, [*found.columns, *scope.context])
        return found.where(self._differ(columns, found.columns, scope.context))

    def unlike(self, matches: Instances, earliest: Times, new: Iterable[Column]) -> tuple[Instances, Times]:
        """Matches whose new events differ from all others."""
        if not self.codes:
            return matches, earliest
        added = set(new)
        holds = self._differ(matches.columns, added, [c for c in matches.columns if c not in added])
        return matches.where(holds), earliest[holds]

    def all_unlike(self, matches: Instances) -> Mask:
        if not self.codes:
            return np.ones(len(matches), dtype=np.bool_)
        return self._differ(matches.columns, matches.columns, matches.columns)

    def _differ(self, columns: Columns, ones: Iterable[Column], others: Iterable[Column]) -> Mask:
        """Whether each event of the ones differs from each of the others; a missing value is not known to."""
        result = np.ones(len(next(iter(columns.values()))), dtype=np.bool_)
        pairs = {frozenset((a, b)) for a in ones for b in others if a != b}
        for a, b in pairs:
            both = (columns[a] >= 0) & (columns[b] >= 0)
            for code in self.codes:
                x, y = code[columns[a]], code[columns[b]]
                result &= ~both | ((x != y) & (x >= 0) & (y >= 0))
        return result


def names_in(expression: pl.Expr) -> list[str]:
    """The columns an expression reads, each once."""
    return list(dict.fromkeys(expression.meta.root_names()))


def with_context(found: Instances, scope: Scope, needed: Iterable[Column]) -> Columns:
    """Columns of instances and of what is around them."""
    return {c: found.columns[c] if c in found.columns else scope.context[c][found.g] for c in needed}
