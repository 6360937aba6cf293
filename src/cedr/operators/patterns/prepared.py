"""A pattern, its conditions and its output, made ready for evaluation over events, however these are kept."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl

from cedr.columnar.chunk import VS, Times
from cedr.operators.patterns.entry import Entry
from cedr.operators.patterns.evaluation import Evaluation
from cedr.operators.patterns.headers import Headers
from cedr.operators.patterns.questions import Questions, names_in
from cedr.operators.patterns.rendering import Rendering
from cedr.operators.patterns.selection import MatchSelection
from cedr.plan.patterns.keys import key_of
from cedr.plan.patterns.outputs import Outputs
from cedr.plan.patterns.parts import PatternPart
from cedr.plan.patterns.sharing import parts_under, unique
from cedr.plan.patterns.tree import Condition, EventType, Pattern

Attribute = Callable[[int, str], pl.Series]
"""The column of a port's payloads, by slot."""


class PreparedPattern:
    """`start` is the column that holds the starts of events."""

    def __init__(
        self,
        schemas: Sequence[Mapping[str, pl.DataType]],
        pattern: Pattern,
        where: Sequence[Condition],
        outputs: Outputs,
        start: str = VS,
    ) -> None:
        key = key_of(pattern, where, [dict(s) for s in schemas])
        self.unique = unique(where)
        self.root = parts_under(key, pattern, where)
        self.parts = list(self.root.walk())
        self.variables = {p.pattern.var: p for p in self.parts if p.pattern.var}
        self.rendering = Rendering(self.root, outputs)
        self.entry = Entry(schemas, self.root, key, where, start)

    @property
    def needs_ids(self) -> bool:
        """Whether ids are needed, or the order of instances that start together."""
        names = [name for p in self.parts for q in p.predicates for name in names_in(q.expression)]
        named = any(name in ("Id", "cbt") or name.endswith(".Id") for name in (*self.rendering.reads, *names))
        return named or any(p.selects or p.consumes for p in self.parts)

    def evaluation(
        self, headers: Headers, selection: MatchSelection, slot: Times, variant: Times, attribute: Attribute
    ) -> Evaluation:
        """An evaluation over events that have these slots and are listed under these variants."""

        def values(part: PatternPart, name: str, places: Times) -> pl.Series:
            assert isinstance(part.pattern, EventType)
            return attribute(part.pattern.port, name).gather(slot[places])

        codes = [self._codes(name, slot, variant, attribute) for name in self.unique]
        return Evaluation(headers, Questions(headers, self.variables, values, codes), selection, slot)

    def _codes(self, name: str, slot: Times, variant: Times, attribute: Attribute) -> Times:
        """The values of an attribute as numbers, the same for equal values, -1 where missing."""
        ports = self.entry.ports[variant]
        places = [(port, np.flatnonzero(ports == port)) for port in np.unique(ports)]
        codes = np.full(len(ports), -1, dtype=np.int64)
        if places:
            values = pl.concat([attribute(int(port), name).gather(slot[at]) for port, at in places])
            codes[np.concatenate([at for _, at in places])] = values.rank("dense").cast(pl.Int64).fill_null(-1)
        return codes
