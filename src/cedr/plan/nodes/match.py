"""Match: the matches of an event pattern over its streams."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import polars as pl

from cedr.columnar.sharding import can_be_key
from cedr.plan.aspects import text
from cedr.plan.aspects.partitioning import PartitionRequirement, grouped_by
from cedr.plan.aspects.progress import (
    NodeContext,
    ProgressRequirements,
    RequiredPromise,
    to_emit,
    to_emit_ends,
)
from cedr.plan.aspects.promises import CTI, Schemes, called, narrowed
from cedr.plan.aspects.properties import OrderProperties, Properties, order_at, shortest_memory
from cedr.plan.node import Columns, Node, Speculative, Work
from cedr.plan.patterns.explain import pattern_lines
from cedr.plan.patterns.keys import Key, key_of
from cedr.plan.patterns.outputs import OF_VARIABLES, shown_attributes
from cedr.plan.patterns.parts import parts_of
from cedr.plan.patterns.rules import checked_pattern
from cedr.plan.patterns.sharing import parts_under
from cedr.plan.patterns.spec import VERSION, PatternSpec, certain, ends_with_event
from cedr.plan.patterns.tree import (
    FAR,
    Condition,
    Pattern,
    Predicate,
)
from cedr.plan.schema import Schema, roots
from cedr.temporal.duration import show_duration
from cedr.temporal.time import INF


@dataclass(frozen=True, eq=False)
class Match(Speculative):
    """The matches of a pattern over the members, which are its ports; `outputs` makes the payload of each.

    `bitemporal`: the members contain versions. Their axis is occurrence time, and the columns `id, vs, ve` hold the
    header on the valid axis, on which the pattern looks. So do those of the output, which come before `outputs`.
    """

    work = Work.STATEFUL

    members: tuple[Node, ...]
    pattern: Pattern
    where: tuple[Condition, ...] = ()
    outputs: tuple[tuple[str, pl.Expr], ...] = ()
    text: str = ""
    bitemporal: bool = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.members

    def with_inputs(self, *inputs: Node) -> Self:
        return replace(self, members=inputs)

    @property
    def spec(self) -> PatternSpec:
        schemas = tuple(m.schema for m in self.members)
        return PatternSpec(self.pattern, self.where, self.outputs, schemas, self.bitemporal)

    @cached_property
    def schema(self) -> Schema:
        outputs = checked_pattern(self.spec)
        parts_under(self.key, self.pattern, self.where)
        return {**dict.fromkeys(VERSION, pl.Int64()), **outputs} if self.bitemporal else outputs

    @cached_property
    def key(self) -> Key:
        """The attributes by which events meet."""
        return key_of(self.pattern, self.where, [m.schema for m in self.members])

    @property
    def keys_by_port(self) -> list[tuple[str, ...]] | None:
        """The key of each port's rows, if each has one; None if some have none, or differ among the port's types."""
        found: dict[int, tuple[str, ...]] = {}
        for leaf, attributes in zip(self.pattern.leaves(), self.key.attributes, strict=True):
            if found.setdefault(leaf.port, attributes) != attributes:
                return None
        used = range(len(self.members))
        return [found[port] for port in used] if self.key and all(port in found for port in used) else None

    @property
    def by(self) -> tuple[str, ...]:
        """The key, by its names in the first stream."""
        return (self.keys_by_port or [()])[0]

    @cached_property
    def shown_keys(self) -> dict[str, str]:
        """The outputs that are a part of the key as it is, and its names in the first stream."""
        by_variable = {
            f"{leaf.var}.{attribute}": name
            for leaf, attributes in zip(self.pattern.leaves(), self.key.attributes, strict=True)
            for attribute, name in zip(attributes, self.by, strict=False)
            if leaf.var in certain(self.pattern)
        }
        plain = {name: e.meta.undo_aliases() for name, e in self.outputs}
        columns = {name: e.meta.output_name() for name, e in plain.items() if e.meta.is_column()}
        return {name: by_variable[column] for name, column in columns.items() if column in by_variable}

    @property
    def outputs_of_key(self) -> dict[str, list[str]]:
        """The outputs that show each column of the key, which operators call `key0` and so on."""
        shown = self.shown_keys.items()
        return {f"key{i}": [output for output, n in shown if n == name] for i, name in enumerate(self.by)}

    def reads(self, needed: Columns) -> list[Columns]:
        if self.needs_whole_payloads:
            return [set(m.schema) for m in self.members]
        read: list[Columns] = [set() for _ in self.members]
        ports = {p.var: p.port for p in self.pattern.leaves() if p.var}
        for name in (name for e in self.spec.expressions for name in e.meta.root_names()):
            variable, _, attribute = name.partition(".")
            if attribute and variable in ports and attribute not in OF_VARIABLES:
                read[ports[variable]].add(attribute)
        for leaf in self.pattern.leaves():
            if leaf.where is not None:
                read[leaf.port] |= set(roots(leaf.where, self.members[leaf.port].schema))
            read[leaf.port] |= {c.attribute for c in self.where if not isinstance(c, Predicate)}
        return read

    @property
    def needs_whole_payloads(self) -> bool:
        """Whether ids are required, which are made of the whole payload."""
        if self.bitemporal or any((p.selection, p.consumption) != ("EACH", "REUSE") for p in self.pattern.walk()):
            return True
        names = {name for e in self.spec.expressions for name in e.meta.root_names()}
        return bool(names & {"Id", "cbt"}) or any(name.endswith(".Id") for name in names)

    # --- what a plan asks ----------------------------------------------------------------------------------------

    @property
    def of_single_events(self) -> bool:
        """Whether a match is one event, so that nothing is remembered for it."""
        return ends_with_event(self.pattern) and not self.bitemporal

    @property
    def passed_columns(self) -> dict[str, str]:
        return self.shown_keys

    def describe(self) -> str:
        outputs = ", ".join(name for name, _ in self.outputs)
        return f"Match{text.by(self.by)}: {outputs}{text.latency(self.latency)}"

    def details(self) -> list[str]:
        return pattern_lines(self.pattern, self.where, self.key)

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        return "events that may still take part in a match or forbid one: as far before the CTI as the scopes reach"

    def derive_properties(self, *inputs: Properties) -> Properties:
        order = (
            order_at(self.latency, inputs[0]) if len(inputs) == 1 else OrderProperties(insert_only=False, ordered=False)
        )
        endless = any(p.scope == INF for p in self.pattern.walk())
        as_inputs = self.bitemporal or ends_with_event(self.pattern)
        finite = all(p.finite for p in inputs) if as_inputs else not endless
        return Properties(**order, key=None, finite=finite, remember=shortest_memory(*inputs))

    def progress_requirements(self, context: NodeContext) -> ProgressRequirements | None:
        if self.of_single_events:
            return None
        ports = tuple(range(len(self.members)))
        if self.bitemporal:
            emit = to_emit_ends(self.latency, ports, context)
            return ProgressRequirements(emit, (self.until_settled(context),))
        root = parts_of(self.pattern, ())
        longest = max(p.scope or 0 for p in self.pattern.walk())
        scopes, endless = f"scopes of {show_duration(longest)}", root.back + root.ahead >= FAR
        forget = RequiredPromise(ports, endless, scopes, "scopes that end")
        if root.settled < FAR or self.latency == "eager":
            return ProgressRequirements(to_emit(self.latency, ports, context), (forget,))
        promise = RequiredPromise(ports, True, "", 'scopes that end; to emit, with_latency("eager") is enough')
        return ProgressRequirements(promise, (forget,))

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        """The matches of a single event are its rows, so promises about any column that is shown pass."""
        whole = self.common_schemes(inputs)
        if self.bitemporal:
            return narrowed(whole, ())
        if not self.of_single_events:
            return self.passed_schemes(inputs)
        event = self.pattern.leaves()[0]  # what CANCEL-WHEN keeps comes before what it forbids
        of_event = {names: ends for names, ends in inputs[event.port].items() if names != CTI}
        return {**narrowed(whole, ()), **called(of_event, shown_attributes(self.outputs))}

    def partition_requirement(self) -> PartitionRequirement:
        by_port = self.keys_by_port or [() for _ in self.members]
        kinds = self.members[0].schema
        keys = [key for key in zip(*by_port, strict=True) if can_be_key(kinds[key[0]])]
        return PartitionRequirement(keys, grouped_by(self.by))

    def loop_refusal(self, of_loop: list[bool]) -> str:
        return "a pattern moves lifetimes and may forbid events; use it before or after the loop"
