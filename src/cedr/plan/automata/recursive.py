"""An automaton as a loop: the cyclic plan of the FFP paper (section 4, Figure 4).

    Run(B, T, Q) :- Event(T, A), Transition(start, A, Q), B = T
    Run(B, T, Q) :- Run(B, S, R), Event(T, A), T follows S, Transition(R, A, Q)

The loop's rows are runs: key, first and last place, state, registers. One turn lets every run take the event that
follows its last one, by way of the transitions that lead on from its state.

A loop holds a set, and an automaton's runs are a bag: two runs that show the same are two. So a run also carries a
*path*, a hash of which event it took at each place and by which transition. A match of a regular expression is emitted
once, so it needs no path; and instead of emitting runs of several final states, transitions that lead to one lead to an
extra state, too, whose rows are the answer. Within a window a sequence of events has one lifetime,
whatever runs took it. Without one they may differ, and a loop would emit them as one; that is refused.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from cedr.plan.automata.compiled import AFTER, AT, RANK, SOURCE, SYMBOL, TARGET
from cedr.plan.automata.steps import MOST_STEPS, AutomatonStep, register_conditions
from cedr.plan.iteration import iterate, loop_of
from cedr.plan.loop import Settings
from cedr.plan.node import Node
from cedr.plan.nodes.automaton import Automaton
from cedr.plan.nodes.join import Join
from cedr.plan.nodes.lifetimes import Sliding
from cedr.plan.nodes.lookup import Lookup
from cedr.plan.nodes.places import Places
from cedr.plan.nodes.project import Project, project
from cedr.plan.nodes.select import Select
from cedr.plan.nodes.union import Union
from cedr.plan.schema import Schema
from cedr.temporal.errors import QueryError

BEGIN, END, STATE, PATH = "_run_begin", "_run_end", "_run_state", "_run_path"
ACCEPTS, STEP, FROM, INTO = "_run_accepts", "_run_step", "_run_from", "_run_into"
NAME, ROW = "_run_symbol", "_run_row"

NO_STEP = 1 << MOST_STEPS
"""Steps are bits; every event takes this one, of transitions whose symbol names none."""

ODD = (0x1E3779B97F4A7C15, 0x3C79AC492BA7B653, 0x1C69B3F74AC4AE35)
HALF = 1 << 32


def recursive(node: Automaton, settings: Settings) -> Node:
    """The loop that finds what the node finds."""
    columns = node.schema
    if node.shape.once and (node.shape.window is None or node.shape.order is not None):
        raise QueryError(
            f'{node.text}(plan="recursive"): without a window, or in the order of a column, one sequence of events may '
            "have several lifetimes, which a loop would emit as one; give window=... and no order, or take the native "
            "plan"
        )
    taken = [name for name in (*node.events.schema, *columns) if name.startswith("_run_")]
    if taken:
        raise QueryError(f'{node.text}(plan="recursive"): rename {taken[0]!r}; the plan uses names with _run_')
    return Recursive(node).plan(settings)


@dataclass(frozen=True)
class Recursive:
    node: Automaton

    def plan(self, settings: Settings) -> Node:
        """Runs of one event, then the loop, then its results."""
        seed = self.moved(project(self.events, [*self.key, pl.col(AT).alias(BEGIN), *self.start, *self.of_event]))
        loop = loop_of(seed)
        on = (*self.node.by, END), (*self.node.by, AFTER)
        return self.results(iterate(seed, loop, self.moved(Join(loop, self.events, *on)), settings))

    # --- events --------------------------------------------------------------------------------------------------

    @cached_property
    def events(self) -> Node:
        """What steps ask of an event alone is computed once: ACCEPTS are the steps it can take."""
        shape, steps = self.node.shape, self.node.compiled
        accepts = sum((c.cast(pl.Int64) * (1 << n) for n, c in enumerate(steps.conditions)), whole(NO_STEP))
        names = [*shape.by, *([shape.order] if shape.order else []), *([shape.symbol] if shape.symbol else [])]
        names += [name for name in self.read if name not in names]
        counted = self.node.events if shape.window is None else Sliding(self.node.events, shape.window)
        prepared = project(counted, [*map(pl.col, dict.fromkeys(names)), accepts.alias(ACCEPTS)])
        return Places(prepared, shape.by, shape.order, linked=shape.order is None)

    @property
    def read(self) -> list[str]:
        """The columns of events that are read together with registers."""
        about = [e for _, step in self.node.steps for e in (*self.conditions(step), *(e for _, e in step.updates))]
        return list(dict.fromkeys(n for e in about for n in e.meta.root_names() if n in self.node.events.schema))

    def conditions(self, step: AutomatonStep) -> list[pl.Expr]:
        return register_conditions(step, list(self.registers))

    @property
    def registers(self) -> Schema:
        return dict.fromkeys(dict(self.node.registers), self.node.compiled.register_type)

    @property
    def key(self) -> list[pl.Expr]:
        return [pl.col(name) for name in self.node.by]

    @property
    def start(self) -> list[pl.Expr]:
        """A run that has taken no event yet."""
        registers = [pl.lit(v, dtype=self.registers[name]).alias(name) for name, v in self.node.registers]
        path = [] if self.node.shape.once else [pl.lit(0, dtype=pl.Int64).alias(PATH)]
        return [self.state(self.node.shape.start).alias(STATE), *path, *registers]

    @property
    def of_event(self) -> list[pl.Expr]:
        names = [name for name in self.events.schema if name not in (*self.node.by, AFTER)]
        return [pl.col(name) for name in names]

    # --- a turn --------------------------------------------------------------------------------------------------

    def moved(self, rows: Node) -> Node:
        """Runs joined with the event that follows become runs that have taken it."""
        updates = [self.updated(name).alias(name) for name in self.registers]
        path = [] if self.node.shape.once else [mixed(pl.col(PATH), pl.col(ROW) + pl.col(RANK) * ODD[1]).alias(PATH)]
        took = Select(self.with_transitions(rows), tuple(self.guards()))
        at = [pl.col(BEGIN), pl.col(AT).alias(END), pl.col(INTO).alias(STATE)]
        return project(took, [*self.key, *at, *path, *updates])

    def guards(self) -> list[pl.Expr]:
        found = []
        if self.node.shape.symbol is not None:
            found.append(pl.col(NAME).eq_missing(pl.col(self.node.shape.symbol)))
        found.append((pl.col(ACCEPTS) & pl.col(STEP)) != 0)
        for number, (_, step) in enumerate(self.node.steps):
            found += [(pl.col(STEP) != 1 << number) | e for e in self.conditions(step)]
        return found

    def updated(self, register: str) -> pl.Expr:
        """A register after the step."""
        found, kind = pl.col(register), self.registers[register]
        for number, (_, step) in enumerate(self.node.steps):
            for name, e in step.updates:
                if name == register:
                    found = pl.when(pl.col(STEP) == 1 << number).then(e.cast(kind)).otherwise(found)
        return found

    # --- transitions ---------------------------------------------------------------------------------------------

    def with_transitions(self, rows: Node) -> Node:
        """Runs joined with each transition that leads on from their state."""
        if self.node.fixed is not None:
            return Lookup(rows, self.table, STATE, FROM)
        key = pl.struct(pl.col(STATE)).alias("_run_key")
        return Join(project(rows, [pl.all(), key]), self.changing, ("_run_key",), ("_run_key",))

    @cached_property
    def table(self) -> pl.DataFrame:
        """A table that never changes, with numbers for states and steps."""
        assert self.node.fixed is not None
        fixed, shape = self.node.fixed, self.node.shape
        numbers = {FROM: [self.number[s] for s in fixed[SOURCE]], INTO: [self.number[s] for s in fixed[TARGET]]}
        numbers[ROW] = list(range(1, fixed.height + 1))
        found = pl.DataFrame(numbers, schema=dict.fromkeys(numbers, pl.Int64)).with_columns(fixed[SYMBOL].alias(NAME))
        found = found.with_columns(self.step_of(pl.col(NAME)).alias(STEP), pl.col(ROW) * ODD[0])
        if shape.once:
            final = [self.number[s] for s in shape.final or ()]
            ends = found.filter(pl.col(INTO).is_in(final)).with_columns(pl.lit(self.accepting, pl.Int64).alias(INTO))
            found = pl.concat([found, ends])
        return found.drop(NAME) if shape.symbol is None else found

    @cached_property
    def changing(self) -> Node:
        """A table that changes. Its rows have numbers, too: two that are the same are two."""
        assert isinstance(self.node.transitions, Node)
        numbered = Places(project(self.node.transitions, [pl.col(n) for n in (SOURCE, SYMBOL, TARGET)]), linked=False)
        columns = {INTO: pl.col(TARGET), NAME: pl.col(SYMBOL), STEP: self.step_of(pl.col(SYMBOL))}
        columns |= {"_run_key": pl.struct(pl.col(SOURCE).alias(STATE)), ROW: mixed(pl.col(AT), pl.col(RANK)) * ODD[0]}
        rows = project(numbered, [e.alias(name) for name, e in columns.items()])
        return rows if self.node.shape.symbol is not None else Select(rows, (pl.col(STEP) != NO_STEP,))

    def step_of(self, symbol: pl.Expr) -> pl.Expr:
        """The step that a symbol names."""
        found = whole(NO_STEP)
        if self.node.table[SYMBOL] != pl.String:
            return found
        for number, (name, _) in enumerate(self.node.steps):
            found = pl.when(symbol == name).then(whole(1 << number)).otherwise(found)
        return found

    # --- states --------------------------------------------------------------------------------------------------

    @cached_property
    def number(self) -> dict[Any, int]:
        """Numbers of the states of a table that never changes."""
        assert self.node.fixed is not None
        labels = [self.node.shape.start, *self.node.fixed[SOURCE], *self.node.fixed[TARGET]]
        return {label: number for number, label in enumerate(dict.fromkeys(labels))}

    @property
    def accepting(self) -> int:
        """The extra state of what is matched."""
        return len(self.number)

    def state(self, label: Any) -> pl.Expr:
        if self.node.fixed is not None:
            return pl.lit(self.number[label], dtype=pl.Int64)
        return pl.lit(label, dtype=self.node.table[TARGET])

    # --- results -------------------------------------------------------------------------------------------------

    def results(self, runs: Node) -> Node:
        shape = self.node.shape
        shown = [*self.key, pl.col(BEGIN).alias("begin"), pl.col(END).alias("end")]
        registers = [pl.col(name) for name in self.registers]
        if shape.once:
            return project(Select(runs, (pl.col(STATE) == self.accepting,)), [*shown, *registers])
        if shape.final is not None:
            runs = Select(runs, (pl.any_horizontal(pl.col(STATE) == self.state(s) for s in shape.final),))
        if self.node.fixed is not None:
            labels = pl.Series("state", list(self.number), dtype=self.node.table[TARGET])
            numbers = pl.Series(STATE, range(len(labels)), dtype=pl.Int64)
            runs, state = Lookup(runs, pl.DataFrame([numbers, labels]), STATE, STATE), pl.col("state")
        else:
            state = pl.col(STATE).alias("state")
        complete = project(runs, [*shown, state, *registers])
        return complete if shape.final is not None and shape.start not in shape.final else self.with_empty(complete)

    def with_empty(self, complete: Project) -> Node:
        """The runs of no events, which are before each event, are not part of the loop."""
        at, start = pl.col(AT), pl.lit(self.node.shape.start, dtype=self.node.table[TARGET]).alias("state")
        registers = [e for e in self.start if e.meta.output_name() in self.registers]
        empty = project(self.events, [*self.key, at.alias("begin"), (at - 1).alias("end"), start, *registers])
        return Union((complete, empty))


def whole(value: int) -> pl.Expr:
    return pl.lit(value, dtype=pl.Int64)


def mixed(path: pl.Expr, took: pl.Expr) -> pl.Expr:
    """A hash of a path and what it took next, in arithmetic that wraps round; the same in every process."""
    return (path ^ (path // HALF)) * ODD[2] + took
