"""The plan node that runs an automaton over events; `cedr.reference.automata` defines what it finds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import polars as pl
from polars.exceptions import PolarsError

from cedr.plan.aspects import text
from cedr.plan.aspects.partitioning import PartitionRequirement, columns_as_keys, grouped_by
from cedr.plan.aspects.progress import (
    AT_ONCE,
    ENDING,
    NodeContext,
    ProgressRequirements,
    RequiredPromise,
)
from cedr.plan.aspects.promises import Schemes
from cedr.plan.aspects.properties import Properties, shortest_memory
from cedr.plan.automata.compiled import COLUMNS, SYMBOL, TARGET, CompiledSteps, Shape
from cedr.plan.automata.steps import MOST_REGISTERS, MOST_STEPS, AutomatonStep, compile_steps
from cedr.plan.node import Columns, Node, Work, lifetimes
from cedr.plan.schema import (
    Schema,
    check_columns,
    check_predicate,
    first_line,
    project_schema,
    roots,
    show_expression,
)
from cedr.temporal.duration import show_duration
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF

Triple = tuple[Any, Any, Any]
PLACES = ("begin", "end", "state")


@dataclass(frozen=True, eq=False)
class Automaton(Node):
    """The runs of an automaton over `events`, with a table of transitions that is fixed or a stream."""

    work = Work.STATEFUL

    events: Node
    transitions: Node | tuple[Triple, ...]
    shape: Shape
    steps: tuple[tuple[str, AutomatonStep], ...] = ()
    registers: tuple[tuple[str, float], ...] = ()
    text: str = "automaton"

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.events, self.transitions) if isinstance(self.transitions, Node) else (self.events,)

    def with_inputs(self, *inputs: Node) -> Self:
        table = inputs[1] if isinstance(self.transitions, Node) else self.transitions
        return replace(self, events=inputs[0], transitions=table)

    @property
    def by(self) -> tuple[str, ...]:
        return self.shape.by

    @cached_property
    def schema(self) -> Schema:
        shape, columns, what = self.shape, self.events.schema, self.text
        check_columns(shape.by, columns, f"{what}(by={list(shape.by)})")
        if shape.order is not None:
            check_columns([shape.order], columns, f"{what}(order={shape.order!r})")
            if not columns[shape.order].is_integer() or columns[shape.order] == pl.UInt64:
                raise QueryError(
                    f"{what}(order={shape.order!r}): the column is {columns[shape.order]}; "
                    "it must hold sequence numbers, as Int64"
                )
        self.check_names()
        self.check_steps()
        self.check_table()
        table = self.table
        state = {} if shape.once else {"state": table[TARGET]}
        kind = self.compiled.register_type
        key = {name: columns[name] for name in shape.by}
        return {**key, "begin": pl.Int64(), "end": pl.Int64(), **state, **dict.fromkeys(dict(self.registers), kind)}

    # --- the table -----------------------------------------------------------------------------------------------

    @cached_property
    def fixed(self) -> pl.DataFrame | None:
        """The table, if it never changes."""
        if isinstance(self.transitions, Node):
            return None
        if not self.transitions:
            raise QueryError(f"{self.text}: there are no transitions, so no event is ever taken")
        kinds = {}
        if self.shape.symbol is not None:
            check_columns([self.shape.symbol], self.events.schema, f"{self.text}(symbol={self.shape.symbol!r})")
            kinds[SYMBOL] = self.events.schema[self.shape.symbol]
        try:
            return pl.DataFrame(list(self.transitions), schema=list(COLUMNS), schema_overrides=kinds, orient="row")
        except (PolarsError, TypeError, ValueError) as e:
            raise QueryError(
                f"{self.text}: a transition is (source, symbol, target), such as ('S', 'A', 'F'), with states of one "
                f"type; {first_line(e)}"
            ) from None

    @cached_property
    def table(self) -> Schema:
        """Names and types of the table's columns."""
        if self.fixed is not None:
            return dict(self.fixed.schema)
        assert isinstance(self.transitions, Node)
        check_columns(COLUMNS, self.transitions.schema, f"{self.text}, transitions")
        return {name: self.transitions.schema[name] for name in COLUMNS}

    def check_table(self) -> None:
        kinds, what = self.table, self.text
        if kinds["source"] != kinds[TARGET]:
            raise QueryError(f"{what}: states are {kinds['source']} in source, but {kinds[TARGET]} in target")
        if self.shape.symbol is not None:
            check_columns([self.shape.symbol], self.events.schema, f"{what}(symbol={self.shape.symbol!r})")
            kind = self.events.schema[self.shape.symbol]
            if kind != kinds[SYMBOL]:
                raise QueryError(
                    f"{what}: symbols are {kinds[SYMBOL]} in the table, but {kind} in {self.shape.symbol!r}; cast one"
                )
        elif kinds[SYMBOL] != pl.String:
            raise QueryError(f"{what}: symbols name steps, so they are texts, not {kinds[SYMBOL]}; or give symbol=...")
        for label in (self.shape.start, *(self.shape.final or ())):
            if not fits(label, kinds[TARGET]):
                raise QueryError(f"{what}: state {label!r} is not {kinds[TARGET]}, as the states of the table are")
        if self.fixed is not None:
            self.check_fixed(self.fixed)

    def check_fixed(self, table: pl.DataFrame) -> None:
        """What would be a mistake in a table that never changes."""
        sources, targets = table["source"].to_list(), table[TARGET].to_list()
        if self.shape.start not in sources:
            raise QueryError(f"{self.text}: no transition leads out of the start state {self.shape.start!r}")
        for label in self.shape.final or ():
            if label not in targets and label != self.shape.start:
                raise QueryError(f"{self.text}: no transition leads to the final state {label!r}")
        if self.shape.symbol is None:
            for name in table[SYMBOL].to_list():
                check_columns([name], dict(self.steps), f"{self.text}: symbols name steps")

    # --- steps ---------------------------------------------------------------------------------------------------

    def check_names(self) -> None:
        taken = [*self.shape.by, *(PLACES if not self.shape.once else PLACES[:2])]
        for name in (*self.shape.by, *dict(self.registers)):
            if taken.count(name) > (name in self.shape.by):
                raise QueryError(f"{self.text}: {name!r} is a column of the result; give it another name")
        for name, value in self.registers:
            if name in self.events.schema:
                raise QueryError(f"{self.text}: {name!r} is a register and a column of the events; rename one")
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise QueryError(f"{self.text}: register {name!r} starts as {value!r}; it must be a number")

    def check_steps(self) -> None:
        if len(self.steps) > MOST_STEPS:
            raise QueryError(f"{self.text}: {len(self.steps)} steps, at most {MOST_STEPS} are possible")
        if len(self.registers) > MOST_REGISTERS:
            raise QueryError(f"{self.text}: {len(self.registers)} registers, at most {MOST_REGISTERS} are possible")
        columns = {**self.events.schema, **dict.fromkeys(dict(self.registers), self.compiled.register_type)}
        for name, step in self.steps:
            what = f"{self.text}, step {name!r}"
            if step.when is not None:
                check_predicate(step.when, columns, f"{what} ({show_expression(step.when)})")
            for register, e in step.updates:
                (kind,) = project_schema([e.alias(register)], columns, f"{what} sets {register!r}").values()
                if not kind.is_numeric() and kind != pl.Null:
                    raise QueryError(
                        f"{what} sets {register!r} to {show_expression(e)}, which is {kind}, not a number; "
                        "registers are numbers, so cast it to Int64 or Float64 first"
                    )

    @cached_property
    def compiled(self) -> CompiledSteps:
        columns = {**self.events.schema, **dict.fromkeys(dict(self.registers), pl.Float64())}
        for name, step in self.steps:
            what = f"{self.text}, step {name!r}"
            for register, _ in step.updates:
                if register not in dict(self.registers):
                    raise QueryError(
                        f"{what} sets {register!r}, which is not a register; give registers={{{register!r}: 0}}"
                    )
            for e in step.expressions:
                check_columns(roots(e, columns), columns, what)
        return compile_steps(dict(self.steps), dict(self.registers), self.events.schema, self.text)

    def steps_read(self) -> list[str]:
        """The columns of events that steps and symbols look at."""
        names = {name for _, step in self.steps for e in step.expressions for name in e.meta.root_names()}
        names |= {self.shape.symbol} if self.shape.symbol else set()
        return [name for name in self.events.schema if name in names]

    # --- what a plan asks ----------------------------------------------------------------------------------------

    def reads(self, needed: Columns) -> list[Columns]:
        of_events = {*self.steps_read(), *self.shape.by, *([self.shape.order] if self.shape.order else [])}
        return [of_events, set(COLUMNS)][: len(self.inputs)]

    def describe(self) -> str:
        shape = self.shape
        within = "" if shape.window is None else f", within {show_duration(shape.window)}"
        order = "" if shape.order is None else f", in order of {shape.order}"
        states = "" if shape.final is None else f" to {', '.join(map(str, shape.final))}"
        runs = "" if shape.once else f": {shape.start}{states or ', all runs'}"
        return f"Automaton{text.by(shape.by)}{order}{within}{runs}"

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        if self.shape.window is None:
            return text.bounded("events past the CTI", inputs[:1])
        return f"events that started within {show_duration(self.shape.window)} before the CTI, or since"

    def derive_properties(self, *inputs: Properties) -> Properties:
        """By sequence numbers runs are only added; by starts a late event may split one, so that requires order.

        The longest of several runs may come last, unless a window by starts gives all of them one end.
        """
        events, *table = inputs
        insert_only = events.insert_only and all(p.insert_only for p in table)
        monotone = self.shape.order is not None or events.ordered
        windowed = self.shape.window not in (None, INF)
        grows = self.shape.once and not (windowed and self.shape.order is None)
        return Properties(
            ordered=events.ordered and not table and not grows,
            insert_only=insert_only and monotone and not grows,
            finite=windowed or events.finite,
            remember=shortest_memory(*inputs),
        )

    def progress_requirements(self, context: NodeContext) -> ProgressRequirements:
        ports = tuple(range(len(self.inputs)))
        if self.shape.window is None:
            promise = RequiredPromise(ports, not context.inputs[0].finite, lifetimes(self.events), ENDING)
            return ProgressRequirements(AT_ONCE, (promise,))
        endless = self.shape.window == INF
        window = f"a window of {show_duration(self.shape.window)}"
        promise = RequiredPromise(ports, endless, window, "a window that ends" if endless else "")
        return ProgressRequirements(AT_ONCE, (promise,))

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        return self.passed_schemes(inputs)

    def partition_requirement(self) -> PartitionRequirement:
        keys = columns_as_keys(self.by, self.events.schema)
        return PartitionRequirement(keys, grouped_by(self.by), (0,), "every key follows the same table")


def fits(label: Any, kind: pl.DataType) -> bool:
    try:
        pl.Series([label], dtype=kind, strict=True)
    except (PolarsError, TypeError, ValueError, OverflowError):
        return False
    return label is not None


def as_triples(transitions: Iterable[Any], what: str) -> tuple[Triple, ...]:
    found = tuple(tuple(row) if isinstance(row, list | tuple) else (row,) for row in transitions)
    for row in found:
        if len(row) != 3:
            raise QueryError(f"{what}: {row!r} is not a transition; write (source, symbol, target)")
    return found
