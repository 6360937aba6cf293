"""By which columns a loop can be spread over shards.

A column that the body takes unchanged from the rows of the loop into what it derives from them, like the node at which
a path starts, parts the loop: rows that differ in it never meet, so each shard may run a loop of its own over the seeds
that it gets. What the body reads from outside goes to every shard, unless it is joined on that column as well:

    paths.join(edges, left_on="end", right_on="a").select("start", end="b")     by start, edges to every shard
    orders.join(parts, on=["order", "part"]).select("order", part="made_of")    by order, both inputs

With aggregate selection the column must be one of the group: the best row is chosen among rows of one shard.
"""

from collections import defaultdict
from typing import NamedTuple

from cedr.columnar.sharding import can_be_key
from cedr.plan.loop import LOOP, LoopSelection, outside
from cedr.plan.node import Node
from cedr.plan.nodes.join import Join
from cedr.plan.nodes.project import Project
from cedr.plan.nodes.source import Source
from cedr.plan.nodes.union import Union
from cedr.plan.schema import Schema

Names = frozenset[str]


class LoopKeys(NamedTuple):
    ports: tuple[int, ...]
    """The inputs that are spread; the others go to every shard."""
    keys: list[tuple[str, ...]]
    """The columns that part the loop, each by its names in these inputs. Any of them will do. None: one shard."""
    why_not: str = ""
    """Why there are none."""


def loop_keys(schema: Schema, body: Node, members: int, selection: LoopSelection | None) -> LoopKeys:
    """The keys for which the fewest inputs go to every shard."""
    found: dict[tuple[int, ...], list[tuple[str, ...]]] = defaultdict(list)
    kept = []
    for column, kind in schema.items():
        way = Way(column)
        if column not in (way.through(body) or ()):
            continue
        kept.append(column)
        names = way.names(members)
        if names is not None and can_be_key(kind) and (selection is None or column in selection.by):
            found[tuple(names)].append(tuple(names.values()))
    if not found:
        return LoopKeys(tuple(range(members)), [], refusal(kept, schema, selection))
    ports = max(found, key=len)
    return LoopKeys(ports, found[ports])


def refusal(kept: list[str], schema: Schema, selection: LoopSelection | None) -> str:
    if not kept:
        return "no column passes its body unchanged"
    if selection and not set(kept) & set(selection.by):
        return f"the best row is chosen among rows that differ in {', '.join(kept)}"
    if not any(can_be_key(schema[name]) for name in kept):
        return f"{', '.join(kept)} cannot be a partition key"
    return f"an input adds rows to it and is joined on something else than {', '.join(kept)}"


class Way:
    """A column of the loop on its way through the body."""

    def __init__(self, column: str) -> None:
        self.column = column
        self.joined: dict[str, set[str | None]] = defaultdict(set)
        """By input: the columns it must agree in with the loop. None: it is joined on others."""
        self.added: dict[str, set[str]] = defaultdict(set)
        """By input whose rows become rows of the loop: their column that becomes this one."""

    def names(self, members: int) -> dict[int, str] | None:
        """The column in each input that can be spread by it; None when an input would have to be both."""
        found = {0: self.column}
        for port in range(1, members):
            name = outside(port)
            columns = self.joined[name] | self.added[name]
            if len(columns) == 1 and None not in columns:
                found[port] = str(*columns)
            elif self.added[name]:
                return None
        return found

    def through(self, node: Node) -> Names | None:
        """What the column is called in the rows of a node, maybe nothing; None for rows from outside."""
        if isinstance(node, Source):
            return frozenset((self.column,)) if node.name == LOOP else None
        if isinstance(node, Join):
            return self._through_join(node)
        if isinstance(node, Union):
            return self._through_union(node)
        below = self.through(node.inputs[0])
        if isinstance(node, Project) and below is not None:
            return frozenset(shown for shown, name in node.passed_columns.items() if name in below)
        return below

    def _through_union(self, node: Union) -> Names:
        sides = [(i, self.through(i)) for i in node.inputs]
        common = frozenset.intersection(*(names for _, names in sides if names is not None))
        entering = [i for i, names in sides if names is None]
        if not entering or not common:
            return common
        name = min(common)
        for i in entering:
            self.added[name_of(i)].add(name)
        return frozenset((name,))

    def _through_join(self, node: Join) -> Names:
        left, right = self.through(node.left), self.through(node.right)
        pairs = list(zip(node.left_on, node.right_on, strict=True))
        if right is None:
            self.joined[name_of(node.right)].add(next((r for l, r in pairs if l in (left or ())), None))  # noqa: E741
            return left or frozenset()
        shown = frozenset(name for r in right if (name := node.right_names[r]) is not None)
        shown |= {l for l, r in pairs if r in right}  # noqa: E741
        if left is None:
            self.joined[name_of(node.left)].add(next((l for l, r in pairs if r in right), None))  # noqa: E741
            return shown
        return left | shown if any(l in left and r in right for l, r in pairs) else frozenset()  # noqa: E741


def name_of(node: Node) -> str:
    assert isinstance(node, Source)
    return node.name
