"""What a checkpoint records of a plan, so that a changed query can be compared with it: operators and their identities.

The identity of an operator with state is a hash of what its state means: its kind and settings, the columns of its
inputs, and for each input from which operators with state or sources its rows come, by which keys they are partitioned
and which lifetimes they get on the way. Everything else on the way may change: `where`, `select`, and the operators
that check and wait, which belong to the level of consistency. These are recorded as text, so that a change is found.

A latency and the aggregates of a group are not part of an identity either: `changes` compares them.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import Any, NamedTuple

import polars as pl

from cedr.plan import aggregates as agg
from cedr.plan.aspects.properties import Properties
from cedr.plan.excluded import ExcludedValues, excluded_values
from cedr.plan.fragment import Fragment, Input, PhysicalStep
from cedr.plan.node import Node, Speculative, Work
from cedr.plan.nodes import Aggregate, Align, Finalize, Fused, Guard, Merge, MergeBy, Project, Select, Union
from cedr.plan.nodes.merge import choose
from cedr.plan.partitioning import Exchange, Path, StagedPlan
from cedr.plan.schema import Schema, show_expression

STATE, CHECK, WAIT, ROWS = "state", "check", "wait", "rows"
"""Roles: remembers rows; checks promises; holds rows back; looks at one row at a time."""
NOT_MEANT = ("latency", "waits", "lengths")
"""Settings that say when results are emitted, or nothing."""


@dataclass(frozen=True)
class PortRecord:
    """An input of an operator: whether its rows are ever corrected, its columns, and the text of what does not change
    lifetimes between it and the operators that it gets rows from.

    `excluded` are values that no row has because of that: operators were promised so, and rely on it. Of a union, all
    that a member may have promised; `still_excluded` is what holds for all members.
    """

    insert_only: bool
    columns: list[list[str]]
    between: list[str]
    excluded: list[ExcludedValues]
    still_excluded: list[ExcludedValues]


@dataclass(frozen=True)
class OperatorRecord:
    """A step of a stage."""

    stage: int
    step: int
    role: str
    text: str
    identity: str
    ports: list[PortRecord]
    inputs: list[Input]
    """Steps or exchanges that it gets rows from."""
    latency: str | None = None
    by: list[list[str]] | None = None
    """Of an operator that holds rows back, the columns about which promises release them."""
    kept: dict[str, str] | None = None
    """Of an aggregate, what it keeps of the rows, and under which name."""
    results: str | None = None
    """Its aggregates."""

    @property
    def name(self) -> str:
        return f"{self.text} (stage {self.stage})"


@dataclass(frozen=True)
class PlanRecord:
    """A plan, as far as another one is compared with it."""

    lines: list[str]
    sources: list[str]
    exchanges: list[str]
    operators: list[OperatorRecord]
    answer: OperatorRecord
    """The result as if an operator took it."""
    outputs: list[list[Input]]
    """By stage what leaves it: its last operator, and what goes into exchanges."""

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(stored: dict[str, Any]) -> "PlanRecord":
        operators = [operator_record(found) for found in stored["operators"]]
        answer = operator_record(stored["answer"])
        return PlanRecord(**{**stored, "operators": operators, "answer": answer})

    def of_stage(self, stage: int) -> list[OperatorRecord]:
        return [operator for operator in self.operators if operator.stage == stage]


def operator_record(stored: dict[str, Any]) -> OperatorRecord:
    return OperatorRecord(**{**stored, "ports": [port_record(port) for port in stored["ports"]]})


def port_record(stored: dict[str, Any]) -> PortRecord:
    values = {name: [ExcludedValues(*found) for found in stored[name]] for name in ("excluded", "still_excluded")}
    return PortRecord(**{**stored, **values})


def plan_record(plan: StagedPlan, lines: list[str], sources: list[str]) -> PlanRecord:
    return PlanRecorder(plan).record(lines, sources)


class RowsWay(NamedTuple):
    """How rows come to an input: from where, with which lifetimes; and through what else."""

    origins: Any
    between: list[str]
    excluded: list[ExcludedValues]
    still_excluded: list[ExcludedValues]

    def port(self, insert_only: bool, schema: Schema) -> PortRecord:
        return PortRecord(insert_only, columns(schema), self.between, self.excluded, self.still_excluded)


class PlanRecorder:
    """Goes through the stages of a plan in the order in which rows pass them."""

    def __init__(self, plan: StagedPlan) -> None:
        self.plan = plan
        self.paths: dict[str, Path] = {path.exchange.name: path for path in plan.paths}
        self.leaving: dict[str, tuple[int, Input, Exchange]] = {
            exchange.name: (stage.number, number, exchange)
            for stage in plan.stages
            for number, exchange in stage.outputs
        }
        self.identities: dict[tuple[int, int], str] = {}
        self.ways: dict[tuple[int, Input], RowsWay] = {}
        self.counts: dict[str, int] = {}

    def record(self, lines: list[str], sources: list[str]) -> PlanRecord:
        operators = [
            self._operator(stage.number, n) for stage in self.plan.stages for n in range(len(stage.fragment.steps))
        ]
        last = self.plan.stages[-1]
        way = self._way(last.number, last.fragment.output)
        known = self._known(last.fragment)
        identity = hashed(["answer", way.origins])
        port = way.port(known.insert_only, self.plan.schema)
        answer = OperatorRecord(last.number, -1, ROWS, "the result", identity, [port], [last.fragment.output])
        outputs = [[stage.fragment.output, *(number for number, _ in stage.outputs)] for stage in self.plan.stages]
        return PlanRecord(lines, sources, self._exchanges(), operators, answer, outputs)

    def _known(self, fragment: Fragment) -> Properties:
        """About the rows of the answer."""
        output = fragment.output
        if isinstance(output, str):
            return Properties(insert_only=fragment.sources[output].insert_only)
        step = fragment.steps[output]
        return step.node.derive_properties(*step.known)

    def _exchanges(self) -> list[str]:
        """By which rows move between stages."""
        arriving = [(path.source, path.exchange) for path in self.plan.paths]
        between = [(f"stage {stage}", exchange) for stage, _, exchange in self.leaving.values()]
        return [f"{origin} -> stage {to.stage} as {to.name}, {spread(to)}" for origin, to in (*arriving, *between)]

    # --- operators ---------------------------------------------------------------------------------------------------

    def _operator(self, stage: int, number: int) -> OperatorRecord:
        fragment = self.plan.stages[stage - 1].fragment
        step = fragment.steps[number]
        node, role = step.node, role_of(step.node)
        ways = [self._way(stage, origin) for origin in step.inputs]
        identity = self._numbered(hashed([role, type(node).__name__, *self._meaning(step), [w.origins for w in ways]]))
        self.identities[stage, number] = identity
        ports = [
            way.port(known.insert_only, below.schema)
            for known, below, way in zip(step.known, node.inputs, ways, strict=True)
        ]
        latency = node.latency if isinstance(node, Speculative) else None
        by = [list(names) for names in node.by] if isinstance(node, Align) else None
        base = OperatorRecord(stage, number, role, node.describe(), identity, ports, list(step.inputs), latency, by)
        if not isinstance(node, Aggregate):
            return base
        kept = kept_by(node, step.known[0].insert_only)
        return dataclasses.replace(base, kept=kept, results=node.describe_aggregates())

    def _numbered(self, identity: str) -> str:
        """The second of two equal operators ends in -2."""
        self.counts[identity] = count = self.counts.get(identity, 0) + 1
        return identity if count == 1 else f"{identity}-{count}"

    def _meaning(self, step: PhysicalStep) -> list[Any]:
        node = step.node
        inputs = [columns(i.schema) for i in node.inputs]
        match node:
            case Aggregate():
                return [node.by, columns({name: node.input.schema[name] for name in node.by})]
            case Finalize():
                return [inputs, node.late, step.known[0].insert_only]
            case Guard():
                return [inputs, node.late]
            case Merge():
                return [inputs, plain(node), choose(step.known, node.policy, node.algorithm).algorithm]
            case MergeBy():
                return [inputs, plain(node), node.chosen(step.known[0]).algorithm]
        return [inputs, plain(node), node.details()]

    # --- ways --------------------------------------------------------------------------------------------------------

    def _way(self, stage: int, origin: Input) -> RowsWay:
        if (stage, origin) not in self.ways:
            self.ways[stage, origin] = self._found_way(stage, origin)
        return self.ways[stage, origin]

    def _found_way(self, stage: int, origin: Input) -> RowsWay:
        if isinstance(origin, str):
            return self._through_exchange(origin)
        step = self.plan.stages[stage - 1].fragment.steps[origin]
        if role_of(step.node) == STATE:
            results = [step.node.describe_aggregates()] if isinstance(step.node, Aggregate) else []
            return RowsWay(["operator", self.identities[stage, origin]], results, [], [])
        return passed(step.node, [self._way(stage, i) for i in step.inputs])

    def _through_exchange(self, name: str) -> RowsWay:
        if name in self.paths:
            path = self.paths[name]
            way = way_of_path(path.fragment, path.fragment.output)
            return way._replace(origins=["exchange", spread(path.exchange), way.origins])
        stage, number, exchange = self.leaving[name]
        way = self._way(stage, number)
        return way._replace(origins=["exchange", spread(exchange), way.origins])


def way_of_path(fragment: Fragment, origin: Input) -> RowsWay:
    if isinstance(origin, str):
        return RowsWay(["source", origin], [], [], [])
    step = fragment.steps[origin]
    return passed(step.node, [way_of_path(fragment, i) for i in step.inputs])


def passed(node: Node, below: list[RowsWay]) -> RowsWay:
    """The way of rows above a node without state."""
    if isinstance(node, Union):
        return united(below)
    (way,) = below
    if role_of(node) in (CHECK, WAIT):
        return way
    for part in node.steps if isinstance(node, Fused) else (node,):
        if part.keeps_lifetimes:
            way = way._replace(between=[*way.between, *([] if only_drops_columns(part) else [text_of(part)])])
        else:
            way = way._replace(origins=["lifetimes", type(part).__name__, plain(part), way.origins])
        new = excluded_values(part.predicates, part.schema) if isinstance(part, Select) else []
        found, still = (called(part, values) + new for values in (way.excluded, way.still_excluded))
        way = way._replace(excluded=found, still_excluded=still)
    return way


def only_drops_columns(node: Node) -> bool:
    return isinstance(node, Project) and node.passed_columns == {name: name for name in node.schema}


def united(members: list[RowsWay]) -> RowsWay:
    first, *others = members
    return RowsWay(
        ["union", [member.origins for member in members]],
        [text for member in members for text in member.between],
        [values for member in members for values in member.excluded],
        [v for v in first.still_excluded if all(any(o.covers(v) for o in m.still_excluded) for m in others)],
    )


def called(node: Node, values: list[ExcludedValues]) -> list[ExcludedValues]:
    """What is excluded above a node, by the names that columns have there."""
    passed_on = node.passed_columns.items()
    return [v._replace(column=out) for v in values for out, inner in passed_on if inner == v.column]


def role_of(node: Node) -> str:
    if isinstance(node, Finalize | Guard):
        return CHECK
    if isinstance(node, Align):
        return WAIT
    return STATE if node.work is Work.STATEFUL else ROWS


def spread(exchange: Exchange) -> str:
    return "to every shard" if exchange.broadcast else f"by {exchange.keys}"


def text_of(node: Node) -> str:
    """With what its line in `explain` leaves out."""
    return f"{node.describe()} #{hashed(plain(node))}"


# --- what an aggregate keeps ---------------------------------------------------------------------------------------


def kept_by(node: Aggregate, insert_only: bool) -> dict[str, str]:
    """What the state of an aggregate consists of, besides groups and end points."""
    schema, found = node.input.schema, {}
    for name, a in node.aggregates:
        kinds = ", ".join(f"{c} {schema[c]}" for c in a.columns)
        if isinstance(a, agg.UserDefined):
            found["rows of " + kinds] = name
        elif isinstance(a, agg.SUMS):
            found |= {f"{what} of {kinds}": name for what in sums_of(a) if kinds}
        elif insert_only and isinstance(a, agg.Min | agg.Max):
            found[f"{type(a).__name__.lower()} of {kinds}"] = name
        else:
            found["values of " + kinds] = a.column
    return found


def sums_of(a: agg.ColumnAggregate) -> list[str]:
    if isinstance(a, agg.Count):
        return ["count"]
    return ["count", "sum", "squares"] if a.squares else ["count", "sum"]


# --- settings as plain values ----------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A value as lists and texts that are the same in every process; inputs of nodes are left out."""
    match value:
        case None | bool() | int() | float() | str():
            return repr(value)
        case pl.Expr():
            return show_expression(value)
        case pl.DataFrame():
            return [columns(value.schema), hashed([repr(row) for row in value.iter_rows()])]
        case Enum():
            return value.name
        case dict():
            return sorted([plain(k), plain(v)] for k, v in value.items())
        case set() | frozenset():
            return sorted(map(repr, map(plain, value)))
        case tuple() | list():
            return [plain(v) for v in value if not isinstance(v, Node)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        settings = [f.name for f in dataclasses.fields(value) if f.name not in NOT_MEANT]
        inner = {name: getattr(value, name) for name in settings if not isinstance(getattr(value, name), Node)}
        return [type(value).__name__, *([name, plain(v)] for name, v in inner.items())]
    return type(value).__name__  # a function: its text is in the line of the node, its body is not compared


def columns(schema: Any) -> list[list[str]]:
    return [[name, str(kind)] for name, kind in schema.items()]


def hashed(value: Iterable[Any]) -> str:
    return blake2b(repr(value).encode(), digest_size=8).hexdigest()
