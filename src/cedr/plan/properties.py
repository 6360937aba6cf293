"""What is known about the rows that leave a node, derived from its inputs, one rule per node.

ordered          sync times never decrease in arrival order
insert_only      there are no adjusts
key              columns that at any instant belong to at most one row; None when nothing is known
duplicate_free   at any instant no payload is there twice
finite           every lifetime has an end
remember         the rows went through a Finalize that remembers this long; None when some did not

A property that is not known is False. Rules use them to drop work, operators to choose a simpler way.
"""

from dataclasses import dataclass, replace
from functools import singledispatch

from cedr.plan.node import Node, topological
from cedr.plan.nodes import (
    Aggregate,
    Align,
    AlterLifetime,
    Automaton,
    Chop,
    Clip,
    Coalesce,
    Deletes,
    Difference,
    Distinct,
    Finalize,
    Fused,
    Guard,
    Hopping,
    Inserts,
    Intersect,
    Iterate,
    Join,
    Level,
    Lookup,
    Match,
    Merge,
    MergeBy,
    Moving,
    Places,
    Project,
    Reach,
    Select,
    Session,
    Shift,
    Slice,
    Sliding,
    Sort,
    Source,
    TopK,
    Union,
)
from cedr.plan.nodes.merge import IN_ORDER, choose
from cedr.plan.patterns import ends_with_event
from cedr.temporal.time import INF

Key = frozenset[str]


@dataclass(frozen=True)
class Properties:
    ordered: bool = False
    insert_only: bool = False
    key: Key | None = None
    duplicate_free: bool = False
    finite: bool = False
    remember: int | None = None

    @property
    def perfect(self) -> bool:
        return self.ordered and self.insert_only

    def __str__(self) -> str:
        words = [
            "ordered" if self.ordered else "",
            "insert-only" if self.insert_only else "",
            "" if self.key is None else f"key ({', '.join(sorted(self.key))})",
            "duplicate-free" if self.duplicate_free else "",
            "finite" if self.finite else "",
        ]
        return ", ".join(w for w in words if w) or "nothing known"


def properties(plan: Node) -> Properties:
    return all_properties(plan)[id(plan)]


def all_properties(plan: Node) -> dict[int, Properties]:
    """The properties of every node, by its identity."""
    known: dict[int, Properties] = {}
    for node in topological(plan):
        known[id(node)] = derive(node, *(known[id(i)] for i in node.inputs))
    return known


@singledispatch
def derive(node: Node, *inputs: Properties) -> Properties:
    raise NotImplementedError(f"no properties for {type(node).__name__}")


@derive.register
def _(node: Source) -> Properties:
    """Without a column of ends or lengths, in which one may be missing, all have the same length."""
    constant = node.vs is not None and node.ve is None and isinstance(node.duration, int) and node.duration != INF
    remember = INF if node.valid else None
    return Properties(
        ordered=node.ordered, insert_only=node.insert_only, finite=constant or node.ends, remember=remember
    )


@derive.register(Select)
@derive.register(Moving)
@derive.register(Shift)
@derive.register(Slice)
@derive.register(Level)
@derive.register(Guard)
def _(node: Node, p: Properties) -> Properties:
    """Fewer rows, or shorter or moved lifetimes: everything known stays true."""
    ends = (isinstance(node, Moving) and node.length != INF) or (isinstance(node, Slice) and node.end != INF)
    return replace(p, finite=p.finite or ends)


@derive.register
def _(node: Project, p: Properties) -> Properties:
    kept = p.key is not None and p.key <= node.passed
    return replace(p, key=p.key if kept else None, duplicate_free=kept)


@derive.register(Sliding)
@derive.register(Hopping)
@derive.register(Inserts)
def _(node: Node, p: Properties) -> Properties:
    """Lifetimes may grow, so rows that never met may meet now."""
    finite = isinstance(node, Hopping) or (isinstance(node, Sliding) and node.length != INF)
    return replace(p, key=None, duplicate_free=False, finite=finite)


@derive.register(AlterLifetime)
@derive.register(Deletes)
def _(node: Node, p: Properties) -> Properties:
    return Properties(
        insert_only=p.insert_only, ordered=p.perfect and isinstance(node, AlterLifetime), remember=p.remember
    )


@derive.register
def _(node: Chop, p: Properties) -> Properties:
    return replace(p, ordered=False, finite=True)


@derive.register
def _(node: Fused, p: Properties) -> Properties:
    for step in node.steps:
        p = derive(step, p)
    return p


@derive.register
def _(node: Union, *inputs: Properties) -> Properties:
    return Properties(
        insert_only=all(p.insert_only for p in inputs),
        finite=all(p.finite for p in inputs),
        remember=remember(*inputs),
    )


@derive.register
def _(node: Merge, *inputs: Properties) -> Properties:
    """What several tell together may overlap for a while, until the ends are put right."""
    finite = all(p.finite for p in inputs)
    if choose(inputs, node.policy, node.algorithm).algorithm not in IN_ORDER:
        return Properties(finite=finite, remember=remember(*inputs))
    keys = {p.key for p in inputs}
    return Properties(
        ordered=True,
        insert_only=True,
        key=keys.pop() if len(keys) == 1 else None,
        duplicate_free=all(p.duplicate_free for p in inputs),
        finite=finite,
        remember=remember(*inputs),
    )


@derive.register
def _(node: MergeBy, p: Properties) -> Properties:
    return Properties(finite=p.finite, remember=p.remember)


@derive.register
def _(node: Iterate, *inputs: Properties) -> Properties:
    """Rows are told before the loop is done, and taken back."""
    finite = all(p.finite for p in inputs)
    return Properties(key=frozenset(node.by), duplicate_free=True, finite=finite, remember=remember(*inputs))


@derive.register
def _(node: Reach, *inputs: Properties) -> Properties:
    """Told in the order of time, and ended in it."""
    finite = any(p.finite for p in inputs)
    key = frozenset(node.schema)
    return Properties(ordered=True, key=key, duplicate_free=True, finite=finite, remember=remember(*inputs))


@derive.register
def _(node: Aggregate, p: Properties) -> Properties:
    return Properties(
        **in_order(node, p), key=frozenset(node.by), duplicate_free=True, finite=p.finite, remember=p.remember
    )


@derive.register
def _(node: TopK, p: Properties) -> Properties:
    key = frozenset({*node.by, node.rank}) if node.rank else frozenset(node.by) if node.k == 1 else None
    return Properties(
        **in_order(node, p), key=key, duplicate_free=key is not None, finite=p.finite, remember=p.remember
    )


@derive.register
def _(node: Distinct, p: Properties) -> Properties:
    return Properties(
        **in_order(node, p), key=frozenset(node.schema), duplicate_free=True, finite=p.finite, remember=p.remember
    )


@derive.register
def _(node: Coalesce, p: Properties) -> Properties:
    known = in_order(node, p)
    return replace(p, insert_only=known["insert_only"], ordered=known["ordered"])


@derive.register
def _(node: Difference, left: Properties, right: Properties) -> Properties:
    return Properties(
        key=left.key, duplicate_free=left.duplicate_free, finite=left.finite, remember=remember(left, right)
    )


@derive.register
def _(node: Intersect, left: Properties, right: Properties) -> Properties:
    return Properties(
        key=frozenset(node.schema),
        duplicate_free=True,
        finite=left.finite or right.finite,
        remember=remember(left, right),
    )


@derive.register
def _(node: Join, left: Properties, right: Properties) -> Properties:
    if node.how in ("semi", "anti"):
        finite = left.finite or (node.how == "semi" and right.finite)
        return Properties(
            key=left.key, duplicate_free=left.duplicate_free, finite=finite, remember=remember(left, right)
        )
    if node.how == "inner":
        finite = left.finite or right.finite
        insert_only = left.insert_only and right.insert_only
    else:
        finite = left.finite and (node.how == "left" or right.finite)
        insert_only = False
    return Properties(insert_only=insert_only, finite=finite, remember=remember(left, right))


@derive.register
def _(node: Clip, left: Properties, right: Properties) -> Properties:
    return Properties(
        key=left.key, duplicate_free=left.duplicate_free, finite=left.finite, remember=remember(left, right)
    )


@derive.register
def _(node: Session, p: Properties) -> Properties:
    return Properties(finite=node.timeout != INF, remember=p.remember)


@derive.register
def _(node: Sort, p: Properties) -> Properties:
    """By value, not by time; and every end is final."""
    return replace(p, ordered=False, insert_only=True)


@derive.register
def _(node: Match, *inputs: Properties) -> Properties:
    order = in_order(node, inputs[0]) if len(inputs) == 1 else {}
    endless = any(getattr(p, "w", 1) == INF for p in node.pattern.walk())
    as_inputs = node.bitemporal or ends_with_event(node.pattern)
    finite = all(p.finite for p in inputs) if as_inputs else not endless
    return Properties(**order, key=None, finite=finite, remember=remember(*inputs))


@derive.register
def _(node: Automaton, events: Properties, *table: Properties) -> Properties:
    """By sequence numbers runs only come; by starts a late event may take one apart, so order is needed for that.

    The longest of several runs may come last, unless a window by starts gives all of them one end.
    """
    insert_only = events.insert_only and all(p.insert_only for p in table)
    monotone = node.shape.order is not None or events.ordered
    windowed = node.shape.window not in (None, INF)
    grows = node.shape.once and not (windowed and node.shape.order is None)
    return Properties(
        ordered=events.ordered and not table and not grows,
        insert_only=insert_only and monotone and not grows,
        finite=windowed or events.finite,
        remember=remember(events, *table),
    )


@derive.register
def _(node: Places, p: Properties) -> Properties:
    """A late event changes what is told of the next."""
    return Properties(finite=p.finite, remember=p.remember)


@derive.register
def _(node: Lookup, p: Properties) -> Properties:
    return replace(p, key=None, duplicate_free=False)


@derive.register
def _(node: Align, p: Properties) -> Properties:
    """Promises about some columns release rows of different values out of turn. Perfect is without adjusts, too."""
    waits = node.block == INF and node.clock is None
    insert_only = p.insert_only or (waits and node.flavour == "perfect")
    return replace(p, ordered=not node.by and (p.ordered or waits), insert_only=insert_only)


@derive.register
def _(node: Finalize, p: Properties) -> Properties:
    return replace(p, remember=node.remember if p.remember is None else min(p.remember, node.remember))


def in_order(node: Aggregate | TopK | Distinct | Coalesce | Match, p: Properties) -> dict[str, bool]:
    """Perfect operators turn perfect input into perfect output, ordered ones ordered into ordered."""
    return {
        "insert_only": p.perfect and node.latency == "perfect",
        "ordered": p.ordered and node.latency in ("perfect", "ordered"),
    }


def remember(*inputs: Properties) -> int | None:
    lengths = [p.remember for p in inputs if p.remember is not None]
    return min(lengths) if len(lengths) == len(inputs) else None
