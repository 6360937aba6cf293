"""A pattern that is one event type: its matches are the events themselves, with their own lifetimes.

CANCEL-WHEN of one event is the same, as nothing lies between its root time and its start. There is nothing to remember,
but neither is there an id, which is a number among equal events.
"""

from collections.abc import Sequence

import polars as pl

from cedr.columnar.chunk import TIMES, VS, Chunk
from cedr.columnar.promises import NONE
from cedr.operators.base import Operator
from cedr.operators.patterns.entry import acceptance
from cedr.operators.patterns.questions import names_in
from cedr.plan.patterns.outputs import Outputs, shown_attributes
from cedr.plan.patterns.parts import PatternPart, parts_of
from cedr.plan.patterns.tree import AttributeEqual, Condition, EventType, Pattern, Predicate


class SingleEventOperator(Operator):
    def __init__(
        self,
        ports: int,
        pattern: Pattern,
        where: Sequence[Condition],
        outputs: Outputs,
        schema: dict[str, pl.DataType],
    ) -> None:
        self.ports = ports
        super().__init__()
        self.schema = dict(schema)
        chain = parts_to_event(parts_of(pattern, tuple(c for c in where if isinstance(c, Predicate))))
        event = chain[-1].pattern
        assert isinstance(event, EventType)
        self.port = event.port
        conditions = [p.expression for part in chain for p in part.predicates]
        fixed = [c for c in where if isinstance(c, AttributeEqual)]
        self.accepts = pl.all_horizontal(acceptance(chain[-1], fixed), *(e.fill_null(False) for e in conditions))
        self.outputs = [e.alias(name) for name, e in outputs]
        read = [*conditions, *(p.expression for p in chain[-1].at_entry), *(e for _, e in outputs)]
        self.shown = shown_attributes(outputs)
        self.aliases = [column(name) for name in dict.fromkeys(name for e in read for name in names_in(e))]

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        promises = chunk.promises.renamed(self.shown) if port == self.port and len(chunk.promises) else NONE
        if port != self.port or not len(chunk):
            nothing = pl.DataFrame(schema={**dict.fromkeys(TIMES, pl.Int64()), **self.schema})
            return Chunk(nothing, self.cti, promises=promises)
        rows = chunk.rows.with_columns(self.aliases).filter(self.accepts)
        return Chunk(rows.with_columns(self.outputs).select(*TIMES, *self.schema), self.cti, promises=promises)


def parts_to_event(part: PatternPart) -> list[PatternPart]:
    return [part] if part.leaf >= 0 else [part, *parts_to_event(part.kept)]


def column(name: str) -> pl.Expr:
    """A column of the event under the name by which it is read."""
    attribute = name.rpartition(".")[2] if name in ("Vs", "Rt") else name.partition(".")[2]
    return pl.col(VS if attribute in ("Vs", "Rt") else attribute).alias(name)
