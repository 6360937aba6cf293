"""How events enter: which event types accept them, and under which key they are listed.

Only inserts and full removals matter. An event that no event type accepts is not kept. Conditions about one event alone
are evaluated here, so that what they reject costs nothing later.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from cedr.columnar.chunk import VS, Chunk, Times
from cedr.operators.join import JoinKeys, each_once
from cedr.operators.patterns.events import EventList, content_of
from cedr.operators.patterns.levels import NO_EVENTS, NOTHING, Events, chained, in_order
from cedr.operators.patterns.questions import names_in
from cedr.plan.patterns.keys import Key
from cedr.plan.patterns.parts import PatternPart
from cedr.plan.patterns.tree import AttributeEqual, Condition, EventType


class Entry:
    def __init__(
        self,
        schemas: Sequence[Mapping[str, pl.DataType]],
        root: PatternPart,
        key: Key,
        where: Sequence[Condition],
        start: str = VS,
    ) -> None:
        leaves = {p.leaf: p for p in root.leaves()}
        named = [(port_of(leaves[leaf]), attributes) for leaf, attributes in enumerate(key.attributes)]
        variants = list(dict.fromkeys(named))
        self.variant_of = [variants.index(name) for name in named]
        self.ports = np.array([port for port, _ in variants])
        """The port of each variant: events of a port with one key."""
        self.keys = JoinKeys([schemas[port] for port, _ in variants], [attributes for _, attributes in variants])
        fixed = [c for c in where if isinstance(c, AttributeEqual)]
        self.evaluated = [leaf for leaf in range(len(leaves)) if leaves[leaf].bit == leaf]
        """The event types that accept other events than those before them."""
        self.accepts = {leaf: acceptance(leaves[leaf], fixed) for leaf in self.evaluated}
        self.aliases = {leaf: aliases(leaves[leaf], start) for leaf in self.evaluated}

    def key_names(self, ports: int) -> list[dict[str, str]]:
        """Of each port the columns behind the key, by their names in the index; none if its event types differ."""
        found: list[dict[str, str]] = []
        for port in range(ports):
            variants = np.flatnonzero(self.ports == port)
            one = len(variants) == 1
            found.append(
                each_once(dict(zip(self.keys.index.schema, self.keys.names[variants[0]], strict=True))) if one else {}
            )
        return found

    def take(self, port: int, chunk: Chunk, events: EventList) -> tuple[Events, Events]:
        """The events that a chunk adds to the list, in order, and those that it removes. Payloads are added here."""
        variants = np.flatnonzero(self.ports == port)
        if not len(chunk) or not len(variants):
            return NO_EVENTS, NO_EVENTS
        vs, old, new = chunk.vs, chunk.old, chunk.new
        come, gone = old == vs, new == vs
        bits = self.bits(chunk.rows, variants)
        accepted = (come | gone) & (np.bitwise_or.reduce(bits) != 0)
        rows = chunk.rows if accepted.all() else chunk.rows.filter(pl.Series(accepted))
        if not rows.height:
            return NO_EVENTS, NO_EVENTS
        vs, come = vs[accepted], come[accepted]
        removes = not come.all()
        inserted = rows.filter(pl.Series(come)) if removes else rows
        slots = np.zeros(len(vs), dtype=np.int64)
        slots[come] = events.payloads[port].add(inserted)
        zeros = np.zeros(len(vs), dtype=np.int64)
        is_compared = removes or events.identified
        content = content_of(vs, rows.select(list(events.payloads[port].schema))) if is_compared else NOTHING
        copy = zeros if is_compared else NOTHING
        listed = chained(
            [
                Events(self.keys.numbers(int(v), rows), vs, slots, of_variant[accepted], zeros + v, content, copy)
                for v, of_variant in zip(variants, bits, strict=True)
            ]
        )
        come, counts = np.tile(come, len(variants)), listed.bits != 0
        added = in_order(listed.part(np.flatnonzero(come & counts)))
        return added, listed.take(np.flatnonzero(~come & counts)) if removes else NO_EVENTS

    def bits(self, rows: pl.DataFrame, variants: Times) -> list[Times]:
        """For each variant, which event types accept each row, one bit for each that differs from the others."""
        leaves = [leaf for leaf in self.evaluated if self.variant_of[leaf] in variants]
        read = [alias for leaf in leaves for alias in self.aliases[leaf]]
        frame = rows.with_columns(read) if read else rows
        answers = frame.select(self.accepts[leaf].alias(str(leaf)) for leaf in leaves)
        bits = [np.zeros(rows.height, dtype=np.int64) for _ in variants]
        for leaf in leaves:
            place = int(np.searchsorted(variants, self.variant_of[leaf]))
            bits[place] |= answers[str(leaf)].to_numpy().astype(np.int64) << leaf
        return bits


def port_of(part: PatternPart) -> int:
    assert isinstance(part.pattern, EventType)
    return part.pattern.port


def acceptance(part: PatternPart, fixed: Sequence[AttributeEqual]) -> pl.Expr:
    """Whether an event type accepts a row."""
    assert isinstance(part.pattern, EventType)
    conditions = [] if part.pattern.where is None else [part.pattern.where]
    conditions += [p.expression for p in part.at_entry]
    conditions += [pl.col(c.attribute) == pl.lit(c.value) for c in fixed]
    if not conditions:
        return pl.repeat(True, pl.len(), dtype=pl.Boolean)
    return pl.all_horizontal(*conditions).fill_null(False) if len(conditions) > 1 else conditions[0].fill_null(False)


def aliases(part: PatternPart, start: str) -> list[pl.Expr]:
    """The columns that conditions about one event read, under the names they use."""
    found: dict[str, pl.Expr] = {}
    for predicate in part.at_entry:
        for name in names_in(predicate.expression):
            attribute = name.partition(".")[2]
            found[name] = pl.col(start if attribute in ("Vs", "Rt") else attribute).alias(name)
    return list(found.values())
