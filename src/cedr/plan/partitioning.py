"""A query in stages: what runs where when the work is partitioned over shards.

Rows reach a stage through exchanges; the hash of an exchange's keys picks the shard that takes a row. Within a stage
every shard works on its own rows. Operators without state right after a source run before the first exchange.

Rows that are combined must be in one shard. `partition_requirements` derives by which columns, from the result down;
here exchanges are placed, from the sources up, where rows are not partitioned as required. Operators that check and
wait (Finalize, Guard, Align) and those without state take rows in any shard, as all rows of one tuple are in one shard.
Broadcast inputs go to every shard through an exchange of their own.

An exchange mixes the rows of several shards and so loses their order. Where rows were in order before, an Align puts
them in order again.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from cedr.plan.aspects.partitioning import Keys
from cedr.plan.aspects.properties import Properties
from cedr.plan.broadcast import IN_ANY_SHARD, between, on_paths, with_own_inputs
from cedr.plan.fragment import Fragment, Input, add_source, fragment_from
from cedr.plan.node import Node, topological
from cedr.plan.nodes import Align, Source
from cedr.plan.nodes.level import Level
from cedr.plan.optimizer import RULES, Rule, optimize
from cedr.plan.partial_aggregates import aggregate_in_parts
from cedr.plan.partition_requirements import Partitioning, PartitionRequirements, carried, chosen, in_common, keys_of
from cedr.plan.rewrite import Shared, rewrite
from cedr.plan.schema import Schema
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF


@dataclass(frozen=True)
class Exchange:
    """Rows on their way into a stage."""

    number: int
    schema: Schema
    keys: tuple[str, ...] | None
    """The hash of these columns picks the shard. (): all rows go to shard 0. None: anywhere, as long as rows with equal
    starts (`_vs`) go to one place."""
    stage: int
    """The stage that takes the rows."""
    reason: str = ""
    """Why rows have to move, for `explain`."""
    broadcast: bool = False
    """Whether all rows go to every shard, whatever the keys."""

    @property
    def name(self) -> str:
        """The source name under which the stage's fragment takes the rows."""
        return f"#{self.number}"


@dataclass(frozen=True)
class Path:
    """From a source into a stage, through operators without state."""

    source: str
    fragment: Fragment
    exchange: Exchange


@dataclass(frozen=True)
class Stage:
    """What every shard runs between two exchanges."""

    number: int
    """1, 2, ..."""
    fragment: Fragment
    """Its sources are named after the exchanges it takes."""
    outputs: tuple[tuple[Input, Exchange], ...]
    """What leaves to later stages."""
    repeated: frozenset[Input] = frozenset()
    """Sources and steps that are the same in every shard. Shard 0 reports on their rows."""

    def reported_elsewhere(self, shard: int) -> frozenset[Input]:
        """The sources and steps on whose rows another shard reports."""
        return frozenset() if shard == 0 else self.repeated


@dataclass(frozen=True)
class StagedPlan:
    """The stages of a query. The answer is the output of the last stage's fragment."""

    sources: dict[str, Source]
    """As the user declared them."""
    paths: tuple[Path, ...]
    stages: tuple[Stage, ...]
    schema: Schema


def staged(query: Level, rules: tuple[Rule, ...] = RULES) -> StagedPlan:
    """The stages of a query."""
    sources: dict[str, Source] = {}
    for node in topological(query):
        check(node)
        if isinstance(node, Source):
            add_source(node, sources)
    plan = with_own_inputs(optimize(without_order(query), (*rules, aggregate_in_parts)).plan)
    early = Staging(plan)
    late = Staging(plan, early.latest_stages())
    return (late if late.cost() < early.cost() else early).result(sources)


def check(node: Node) -> None:
    if isinstance(node, Align) and node.clock is not None:
        raise QueryError(
            "align(clock=...): rows cannot be held by a clock on Spark, where nothing runs between two batches; "
            "leave clock out to block by the time of the events, or use run() or updates()"
        )


def without_order(query: Node) -> Node:
    """The query over sources whose rows come from many tasks: in no order, and with CTIs counted by the runtime."""
    known: dict[str, Source] = {}

    def change(node: Node, shared: Shared) -> Node | None:
        if not isinstance(node, Source):
            return None
        delay = (node.delay or 0) if node.ordered else node.delay
        return known.setdefault(node.name, replace(node, ordered=False, external=False, delay=delay))

    return rewrite(query, change)


NOTHING: Mapping[int, int] = MappingProxyType({})


class Placed(NamedTuple):
    """A node in its stage, above what its stage has."""

    node: Node
    stage: int
    """0: on a path."""
    part: Partitioning
    came_by: Keys | None
    """The keys of the exchange through which the rows came, by the names they had there."""
    known: Properties


class Staging:
    """Places the nodes of a plan one by one, inputs before users, each in the first stage it can be in.

    `not_before`: the stage in which nodes right after a path are needed, so that their rows move once.
    """

    def __init__(self, plan: Node, not_before: Mapping[int, int] = NOTHING) -> None:
        self.plan, self.not_before = plan, not_before
        self.requirements = PartitionRequirements(plan)
        self.exchanges: dict[tuple[int, Keys | None, bool, int], tuple[Placed, Exchange, Placed]] = {}
        """By producer, keys, whether it is broadcast, and stage: the rows that leave, the exchange, and the rows
        that arrive."""
        order = topological(plan)
        paths = on_paths(order)
        self.repeated = {id(n) for node in order for i in node.broadcast_inputs for n in between(i)}
        """Nodes that run in every shard, with the one node that takes their rows."""
        self.order = [node for node in order if id(node) not in self.repeated]
        self.placed: dict[int, Placed] = {}
        for node in self.order:
            inputs = [self.placed[id(i)] for i in node.partitioned_inputs]
            self.placed[id(node)] = self._run(node, inputs, 0) if id(node) in paths else self._place(node, inputs)
        self.answer = self.placed[id(plan)]
        if self.answer.stage == 0:
            self.answer = self._exchange(self.answer, None, 1, "any shard will do")

    # --- one node ------------------------------------------------------------------------------------------------

    def _place(self, node: Node, inputs: list[Placed]) -> Placed:
        required = self.requirements.keys(node)
        latest = max(i.stage for i in inputs)
        if required is None:
            stage = max(latest, 1, self.not_before.get(id(node), 1))
            return self._run(node, [self._joining(node, i, inputs, stage) for i in inputs], stage)
        keys = fulfilled(keys_of(node) or [], inputs, latest)
        if keys is not None:
            stage = latest
        else:
            keys, stage = required, latest + 1
        whole = node.broadcast_inputs
        below = [self.placed[id(n)] for i in whole for n in self._beneath(i)]
        stage = max([stage, *(rows.stage + (not is_there(rows, keys, rows.stage)) for rows in below)])
        moved = [
            i if i.stage == stage else self._exchange(i, names, stage, reason(node, names, i, stage))
            for i, names in zip(inputs, by_input(keys, len(inputs)), strict=True)
        ]
        if not whole:
            return self._run(node, moved, stage)
        spread = dict(zip(node.partitioned_ports, moved, strict=True))
        return self._run(
            node,
            [spread.get(port) or self._broadcast(i, stage, node, keys) for port, i in enumerate(node.inputs)],
            stage,
        )

    def _beneath(self, node: Node) -> list[Node]:
        """The nodes whose rows have to move so that every shard has those of a node."""
        return [n for i in node.inputs for n in self._beneath(i)] if id(node) in self.repeated else [node]

    def _broadcast(self, node: Node, stage: int, user: Node, keys: list[Keys]) -> Placed:
        """An input in every shard that has work with it."""
        if id(node) not in self.repeated:
            rows = self.placed[id(node)]
            if is_there(rows, keys, stage):
                return rows
            why = reason(user, (), rows, stage) if not keys else broadcast_reason(user)
            return self._exchange(rows, () if not keys else None, stage, why, broadcast=bool(keys))
        if id(node) not in self.placed:
            inputs = [self._broadcast(i, stage, user, keys) for i in node.inputs]
            self.placed[id(node)] = self._run(node, inputs, stage)
        return self.placed[id(node)]

    def _joining(self, node: Node, input: Placed, inputs: list[Placed], stage: int) -> Placed:
        """An input of a node that takes rows in any shard; best partitioned like the rest, as later nodes require."""
        if input.stage == stage:
            return input
        demand = self.requirements.demand(node)
        if demand is None or node.partial:
            return self._exchange(input, None, stage, "any shard will do")
        there = [i.part for i in inputs if i.stage == stage]
        keys = chosen(in_common(there), demand.keys) if there else demand.keys
        return self._exchange(input, keys, stage, reason(demand.node, keys, input, stage))

    def _run(self, node: Node, inputs: list[Placed], stage: int) -> Placed:
        below = [i.node for i in inputs]
        same = all(new is old for new, old in zip(below, node.inputs, strict=True))
        ways = {i.came_by for i in inputs}
        return Placed(
            node if same else node.with_inputs(*below),
            stage,
            carried(node, [i.part for i in inputs]) if stage else None,
            ways.pop() if len(ways) == 1 else None,
            node.derive_properties(*(i.known for i in inputs)),
        )

    def _exchange(self, rows: Placed, keys: Keys | None, stage: int, reason: str, *, broadcast: bool = False) -> Placed:
        key = (id(rows.node), keys, broadcast, stage)
        if key not in self.exchanges:
            exchange = Exchange(len(self.exchanges) + 1, dict(rows.node.schema), keys, stage, reason, broadcast)
            self.exchanges[key] = rows, exchange, arrival(rows, exchange)
        return self.exchanges[key][2]

    # --- choosing between two ways -------------------------------------------------------------------------------

    def cost(self) -> tuple[int, int]:
        return self.answer.stage, len(self.exchanges)

    def latest_stages(self) -> dict[int, int]:
        """For nodes that take rows of paths in any shard: the first stage in which someone needs them."""
        early: set[int] = set()
        for node in self.order:
            near = all(self.placed[id(i)].stage == 0 or id(i) in early for i in node.partitioned_inputs)
            if near and node.work in IN_ANY_SHARD:
                early.add(id(node))
        needed = {id(self.plan): self.answer.stage}
        for node in reversed(self.order):
            stage = needed[id(node)] if id(node) in early else self.placed[id(node)].stage
            whole = [n for i in node.broadcast_inputs for n in self._beneath(i)]
            for below in (*node.partitioned_inputs, *whole):
                needed[id(below)] = min(needed.get(id(below), INF), stage)
        return {number: stage for number, stage in needed.items() if number in early}

    # --- the whole -----------------------------------------------------------------------------------------------

    def result(self, sources: dict[str, Source]) -> StagedPlan:
        paths: list[Path] = []
        leaving: dict[int, list[tuple[Node, Exchange]]] = defaultdict(list)
        for rows, exchange, _ in self.exchanges.values():
            if rows.stage == 0:
                fragment, _ = fragment_from(topological(rows.node), rows.node)
                paths.append(Path(next(iter(fragment.sources)), fragment, exchange))
            else:
                leaving[rows.stage].append((rows.node, exchange))
        stages = [self._stage(number, leaving[number]) for number in range(1, self.answer.stage + 1)]
        return StagedPlan(sources, tuple(paths), tuple(stages), dict(self.plan.schema))

    def _stage(self, number: int, leaving: list[tuple[Node, Exchange]]) -> Stage:
        last = number == self.answer.stage
        outputs = [node for node, _ in leaving] + ([self.answer.node] if last else [])
        order = {id(node): node for output in outputs for node in topological(output)}
        fragment, numbers = fragment_from(list(order.values()), outputs[-1])
        arriving = {exchange.name for _, exchange, _ in self.exchanges.values() if exchange.broadcast}
        return Stage(
            number,
            fragment,
            tuple((numbers[id(node)], exchange) for node, exchange in leaving),
            repeated_in(fragment, arriving),
        )


def is_there(rows: Placed, keys: list[Keys], stage: int) -> bool:
    """Whether rows that all shards with work need are in the only one already."""
    return not keys and rows.part == () and rows.stage == stage


def repeated_in(fragment: Fragment, arriving: set[str]) -> frozenset[Input]:
    """What only takes rows that every shard has."""
    found: set[Input] = {name for name in fragment.sources if name in arriving}
    for number, step in enumerate(fragment.steps):
        if found.issuperset(step.inputs):
            found.add(number)
    return frozenset(found)


def arrival(rows: Placed, exchange: Exchange) -> Placed:
    """The rows as the next stage sees them: of each shard in order, but one shard's after another's."""
    keys = exchange.keys
    part = None if keys is None else tuple(frozenset((name,)) for name in keys)
    node: Node = Source(exchange.name, tuple(exchange.schema.items()), insert_only=rows.known.insert_only)
    return Placed(Align(node) if rows.known.ordered else node, exchange.stage, part, keys, rows.known)


# --- what is required and what is there ----------------------------------------------------------------------------


def fulfilled(required: list[Keys], inputs: list[Placed], stage: int) -> list[Keys] | None:
    """The keys by which the inputs in this stage are partitioned already, all alike; None if they are not.

    Rows in one shard fulfil every requirement. But where others are still to come, it is better to partition them all
    by the required keys.
    """
    here = {number: i.part for number, i in enumerate(inputs) if i.stage == stage > 0}
    if here and all(part == () for part in here.values()):
        return [] if not required or len(here) == len(inputs) else None
    keys: list[Keys] = []
    for columns in columns_of(list(here.values())):
        fits = [key for key in required if all(key[n] in names for n, names in zip(here, columns, strict=True))]
        if not fits:
            return None
        keys.append(fits[0])
    return keys or None


def columns_of(parts: list[Partitioning]) -> list[tuple[frozenset[str], ...]]:
    """The columns by which rows are partitioned, each with its names in all inputs; none if these differ in number."""
    known = [part for part in parts if part]
    alike = len(known) == len(parts) and len({len(part) for part in known}) == 1
    return list(zip(*known, strict=True)) if alike else []


def by_input(keys: list[Keys], inputs: int) -> list[Keys]:
    return [tuple(key[number] for key in keys) for number in range(inputs)]


def reason(node: Node, keys: Keys | None, rows: Placed, stage: int) -> str:
    """Why rows have to move before they reach a node."""
    requirement = node.partition_requirement()
    assert requirement is not None
    if keys == () and requirement.one_shard_reason:
        return requirement.one_shard_reason
    if keys == ():
        parts = node.inputs[0].partial
        return "partial answers come together" if parts else "there is no key"
    if rows.stage == 0:
        return requirement.reason
    if rows.part is not None and chosen(rows.part, keys or ()) == keys:
        return f"{requirement.reason}, with rows of stage {stage}"
    came = "in any shard" if rows.came_by is None else describe_keys(rows.came_by)
    return f"{requirement.reason}, but rows come {came}"


def broadcast_reason(node: Node) -> str:
    """Why every shard gets an input."""
    requirement = node.partition_requirement()
    return requirement.broadcast_reason if requirement else ""


def describe_keys(keys: Keys | None) -> str:
    """How rows are partitioned, for `explain`."""
    if keys is None:
        return "by start"
    return f"by {', '.join(keys)}" if keys else "in one shard"
