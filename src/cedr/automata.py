"""Automata over streams: the public functions `automaton`, `regex` and `step`.

w = cedr.automaton(ticks, table, start="S", final="F", steps=steps, registers={"m": 0}, window=30)
found = cedr.regex("A B* A", events, A=pl.col("kind") == "a", B=pl.col("kind") == "b", window="5 min", by="machine")
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

from cedr.arguments import Columns, Expressions, as_expression, as_value, with_current_names
from cedr.plan.automata.compiled import Shape
from cedr.plan.automata.recursive import recursive
from cedr.plan.automata.steps import AutomatonStep
from cedr.plan.loop import Settings
from cedr.plan.nodes.automaton import Automaton, as_triples
from cedr.plan.schema import column_names
from cedr.stream import Stream, plan_of
from cedr.syntax.automata.compile import compiled
from cedr.syntax.automata.glushkov import START, Positions
from cedr.temporal.duration import Duration
from cedr.temporal.duration import duration as as_duration
from cedr.temporal.errors import QueryError

Transitions = Stream | Iterable[tuple[Any, Any, Any]]
AsStep = AutomatonStep | Expressions
Plan = Literal["native", "recursive"]

AUTOMATON, REGEX = "automaton", "regex"


def step(when: Expressions | None = None, /, **updates: Any) -> AutomatonStep:
    """The condition for a step and the registers it sets: `step(pl.col("tick") == "D", m=pl.col("m") + 1)`.

    `when` and the new values may use the event's columns and the registers. All registers are set at the same time,
    from their values before the step.
    """
    condition = None if when is None else as_expression(when, "step")
    return AutomatonStep(condition, tuple((name, as_value(value)) for name, value in updates.items()))


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
    """The runs of an automaton over the events of each key. A run cannot skip events.

    transitions  rows `(source, symbol, target)`, or a stream with these columns: a table that changes over time
    start        the state in which a run begins, at every event
    final        a state, or a list of states: runs that end there are emitted; by default all runs, also partial ones
    symbol       the column of the events that must equal the symbol of a transition
    steps        by symbol, further conditions and the registers to set; without `symbol`, symbols are names of steps
    registers    numbers that a run carries, with their initial values
    by           the key: each value has its own sequence of events
    order        the column of sequence numbers that order the events; by default their starts
    window       how long each event counts, from its start on; by default its lifetime
    plan         "native": one operator; "recursive": a loop, with the same result
    loop         settings of `iterate`, for the recursive plan

    The lifetime of a run is the time during which all its events and transitions are alive. Its row has the key,
    `begin` and `end` (the starts, or the numbers, of its first and last event), the state and the registers.
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
            'automaton: the symbols of the transitions have no meaning yet; give symbol="kind", the event column they '
            'are values of, or steps={"A": pl.col("load") > 0.9, ...}'
        )
    known = tuple((registers or {}).items())
    node = Automaton(plan_of(events, AUTOMATON), table, shape, tuple(given.items()), known, AUTOMATON)
    return planned(node, plan, loop)


def planned(node: Automaton, plan: str, loop: Mapping[str, Any]) -> Stream:
    """The automaton as one operator, or as a loop."""
    if plan not in get_args(Plan):
        raise QueryError(f"{node.text}(plan={plan!r}): it must be one of {', '.join(map(repr, get_args(Plan)))}")
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
        raise QueryError("automaton: final is empty, so nothing would ever be emitted; leave it out to emit all runs")
    return found


def as_window(window: Duration | None, what: str) -> int | None:
    return None if window is None else as_duration(window, f"{what}: window")


def as_step(name: str, given: Any, what: str) -> AutomatonStep:
    return given if isinstance(given, AutomatonStep) else AutomatonStep(as_expression(given, f"{what}, step {name!r}"))


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
    """The sequences of events that match a regular expression: `regex("A B* A", events, A=..., B=..., window=30)`.

    The expression consists of steps in sequence, `|`, `*`, `+`, `?`, `{n}`, `{n,}`, `{n,m}` and parentheses. Each step
    is a condition, or a `step(...)` that also sets registers, passed under its name; use `steps` for names that are not
    valid keywords. A match cannot skip events of its key, and a sequence is emitted once, even if the expression
    matches it in several ways. The other arguments are those of `automaton`, but a recursive plan needs a window and
    takes no settings. Rows have the key, `begin`, `end` and the registers.
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
    steps: tuple[tuple[str, AutomatonStep], ...],
    events: Stream,
    window: int | None,
    by: tuple[str, ...],
    order: str | None,
    registers: Mapping[str, float],
    plan: Plan = "native",
) -> Stream:
    """The matches of a regular expression that has been compiled to an automaton."""
    shape = Shape(START, made.final, None, by, order, window, once=True)
    known = tuple(registers.items())
    node = Automaton(plan_of(events, REGEX), tuple(made.transitions()), shape, steps, known, REGEX)
    return planned(node, plan, {})
