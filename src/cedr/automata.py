"""Automata over streams: the public functions `automaton`, `regex` and `step`.

w = cedr.automaton(ticks, table, start="S", final="F", steps=steps, registers={"m": 0}, window=30)
found = cedr.regex("A B* A", events, A=pl.col("kind") == "a", B=pl.col("kind") == "b", window="5 min", by="machine")
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

from cedr.arguments import Columns, Expressions, as_expression, as_value, with_current_names
from cedr.language.automata.compile import compiled
from cedr.language.automata.glushkov import START, Positions
from cedr.operators.automata.compiled import Shape
from cedr.operators.iterate.settings import Settings
from cedr.plan.automata.recursive import recursive
from cedr.plan.automata.steps import Step
from cedr.plan.nodes.automaton import Automaton, as_triples
from cedr.plan.schema import column_names
from cedr.stream import Stream, plan_of
from cedr.temporal.duration import Duration
from cedr.temporal.duration import duration as as_duration
from cedr.temporal.errors import QueryError

Transitions = Stream | Iterable[tuple[Any, Any, Any]]
AsStep = Step | Expressions
Plan = Literal["native", "recursive"]

AUTOMATON, REGEX = "automaton", "regex"


def step(when: Expressions | None = None, /, **updates: Any) -> Step:
    """What an event must be to take a step, and what it sets: `step(pl.col("tick") == "D", m=pl.col("m") + 1)`.

    `when` may speak of the event's columns and of registers, and so may the new values. All registers are set at once,
    from their values before the step.
    """
    condition = None if when is None else as_expression(when, "step")
    return Step(condition, tuple((name, as_value(value)) for name, value in updates.items()))


def automaton(
    events: Stream,
    transitions: Transitions,
    *,
    start: Any,
    final: Any = None,
    symbol: str | None = None,
    steps: Mapping[str, AsStep] | None = None,
    registers: Mapping[str, float] | None = None,
    by: Columns = (),
    order: str | None = None,
    window: Duration | None = None,
    plan: Plan = "native",
    **loop: Any,
) -> Stream:
    """The runs of an automaton over the events of each key, none of which may be skipped.

    transitions  rows `(source, symbol, target)`, or a stream with these columns: a table that changes in time
    start        the state in which a run begins, at every event
    final        a state, or a list of states: runs that end there are told; by default all runs, partial ones too
    symbol       the column of the events that must equal the symbol of a transition
    steps        by symbol, what else must hold and which registers are set; without `symbol`, symbols name steps
    registers    numbers that a run carries, with their values at the start
    by           the key: each value has its own sequence of events
    order        the column with sequence numbers, by which events follow each other; by default their starts
    window       how long each event counts, from its start on; by default as long as it lives
    plan         "native": one operator; "recursive": a loop, with the same answer
    loop         settings of `iterate`, for the recursive plan

    A run lives as long as all of its events, and the transitions it took. Its row has the key, `begin` and `end` (the
    starts, or the numbers, of its first and last event), the state and the registers.
    """
    table = plan_of(transitions, "automaton") if isinstance(transitions, Stream) else as_triples(transitions, AUTOMATON)
    shape = Shape(
        start,
        as_states(final),
        symbol,
        column_names(by, f"{AUTOMATON}: by"),
        order,
        as_window(window, AUTOMATON),
        once=False,
    )
    given = {name: as_step(name, s, AUTOMATON) for name, s in (steps or {}).items()}
    if symbol is None and not given:
        raise QueryError(
            'automaton: what do the symbols of the transitions mean? Give symbol="kind", the column of the events they '
            'are values of, or steps={"A": pl.col("load") > 0.9, ...}'
        )
    known = tuple((registers or {}).items())
    node = Automaton(plan_of(events, AUTOMATON), table, shape, tuple(given.items()), known, AUTOMATON)
    return planned(node, plan, loop)


def planned(node: Automaton, plan: str, loop: Mapping[str, Any]) -> Stream:
    """The automaton as one operator, or as a loop."""
    if plan not in get_args(Plan):
        raise QueryError(f"{node.text}(plan={plan!r}): it is one of {', '.join(map(repr, get_args(Plan)))}")
    loop = with_current_names(node.text, loop)
    if unknown := [name for name in loop if plan == "native" or name not in LOOP]:
        settings = f'; a plan="recursive" takes {", ".join(LOOP)}'
        raise QueryError(f"{node.text}: there is no argument {unknown[0]!r}{settings}")
    return Stream(node if plan == "native" else recursive(node, replace(CONVERGES, **loop)))


LOOP = ("progress", "max_iterations", "iterations_per_chunk")
CONVERGES = Settings(max_iterations=2**62)
"""Every iteration takes another event, so there are never more iterations than events."""


def as_states(final: Any) -> tuple[Any, ...] | None:
    if final is None:
        return None
    found = tuple(final) if isinstance(final, list | tuple | set | frozenset) else (final,)
    if not found:
        raise QueryError("automaton: final is empty, so nothing would ever be told; leave it out to be told all runs")
    return found


def as_window(window: Duration | None, what: str) -> int | None:
    return None if window is None else as_duration(window, f"{what}: window")


def as_step(name: str, given: Any, what: str) -> Step:
    return given if isinstance(given, Step) else Step(as_expression(given, f"{what}, step {name!r}"))


def regex(
    expression: str,
    events: Stream,
    /,
    *,
    window: Duration | None = None,
    by: Columns = (),
    order: str | None = None,
    registers: Mapping[str, float] | None = None,
    steps: Mapping[str, AsStep] | None = None,
    plan: Plan = "native",
    **named: AsStep,
) -> Stream:
    """The stretches of events that a regular expression matches: `regex("A B* A", events, A=..., B=..., window=30)`.

    The expression is made of steps one after the other, `|`, `*`, `+`, `?`, `{n}`, `{n,}`, `{n,m}` and brackets. Each
    step is a condition, or a `step(...)` that also sets registers, given by its name; `steps` is for names that are no
    keywords. No event of a key is skipped, and a stretch is told once, however the expression takes its events. The
    other arguments are those of `automaton`, but a recursive plan needs a window and takes no
    settings. Rows have the key, `begin`, `end` and the registers.
    """
    if not isinstance(expression, str):
        raise QueryError(f"{REGEX}: the expression is a {type(expression).__name__}; write it first, then the events")
    given = {name: as_step(name, s, REGEX) for name, s in {**(steps or {}), **named}.items()}
    made, used = compiled(expression, given)
    return matches(
        made, used, events, as_window(window, REGEX), column_names(by, f"{REGEX}: by"), order, registers or {}, plan
    )


def matches(
    made: Positions,
    steps: tuple[tuple[str, Step], ...],
    events: Stream,
    window: int | None,
    by: tuple[str, ...],
    order: str | None,
    registers: Mapping[str, float],
    plan: Plan = "native",
) -> Stream:
    """What a regular expression finds once it is an automaton."""
    shape = Shape(START, made.final, None, by, order, window, once=True)
    known = tuple(registers.items())
    node = Automaton(plan_of(events, REGEX), tuple(made.transitions()), shape, steps, known, REGEX)
    return planned(node, plan, {})
