"""Match: the matches of an event pattern over its streams."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import polars as pl

from cedr.operators.patterns.keys import Key, key_of
from cedr.operators.patterns.prepared import parts_under
from cedr.operators.patterns.rendering import OF_VARIABLES
from cedr.operators.patterns.tree import (
    Condition,
    Pattern,
    Predicate,
)
from cedr.plan.node import Node, Speculative
from cedr.plan.pattern_checks import checked_pattern
from cedr.plan.patterns import VERSION, PatternSpec, certain
from cedr.plan.schema import Schema, roots


@dataclass(frozen=True, eq=False)
class Match(Speculative):
    """The matches of a pattern over the members, which are its ports; `outputs` makes the payload of each.

    `bitemporal`: the members tell of versions. Their axis is occurrence time, and the columns `id, vs, ve` hold the
    header on the valid axis, on which the pattern looks. So do those of the output, which come before `outputs`.
    """

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

    def reads(self) -> list[set[str]]:
        """The columns of each member that are needed."""
        if self.needs_whole_payloads:
            return [set(m.schema) for m in self.members]
        needed: list[set[str]] = [set() for _ in self.members]
        ports = {p.var: p.port for p in self.pattern.leaves() if p.var}
        for name in (name for e in self.spec.expressions for name in e.meta.root_names()):
            variable, _, attribute = name.partition(".")
            if attribute and variable in ports and attribute not in OF_VARIABLES:
                needed[ports[variable]].add(attribute)
        for leaf in self.pattern.leaves():
            if leaf.where is not None:
                needed[leaf.port] |= set(roots(leaf.where, self.members[leaf.port].schema))
            needed[leaf.port] |= {c.attribute for c in self.where if not isinstance(c, Predicate)}
        return needed

    @property
    def needs_whole_payloads(self) -> bool:
        """Whether ids are asked for, which are made of the whole payload."""
        if self.bitemporal or any((p.selection, p.consumption) != ("EACH", "REUSE") for p in self.pattern.walk()):
            return True
        names = {name for e in self.spec.expressions for name in e.meta.root_names()}
        return bool(names & {"Id", "cbt"}) or any(name.endswith(".Id") for name in names)
