"""WHEN REGEX: a regular expression over the events of a stream, compiled to an automaton.

DEFINE defines a step; in a feed with a types column, a step without definition is an event of that type.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

import polars as pl

from cedr.automata import matches
from cedr.language.calls import projected, restricted
from cedr.language.names import Names, of_type, types_of
from cedr.language.table_scope import TableScope
from cedr.language.tables import expanded, whole_length
from cedr.plan.automata.steps import AutomatonStep, compile_steps
from cedr.stream import Stream
from cedr.syntax import tree
from cedr.syntax.automata.compile import steps_in
from cedr.syntax.automata.glushkov import positions_of
from cedr.syntax.automata.tree import Regex, RegexStep
from cedr.syntax.errors import LanguageError, did_you_mean, located
from cedr.syntax.scalars import compiled, condition
from cedr.syntax.values import Value

Number = int | float


def regex_matches(node: tree.ParsedRegexQuery, names: Names) -> Stream:
    expression = cast(Regex, node.expression)
    over = events_of(node, names)
    steps = StepDefinitions(node, over)
    used = tuple((name, steps.made(take)) for name, take in takes(expression).items())
    steps.check_used(name for name, _ in used)
    by, order = (node.over.by, node.over.order) if node.over else ((), None)
    window = None if node.window is None else whole_length(node.window)
    with located(node.over.at if node.over else node.at):
        found = matches(positions_of(expression), used, over, window, by, order, steps.registers)
        scope = TableScope(found, {node.var or "regex": {name: name for name in found.columns}})
    if node.where is not None:
        scope.stream = restricted(scope.stream, node.where, scope)
    if not node.output:
        return scope.stream
    return projected(scope.stream, [one for item in node.output for one in expanded(item, scope)], scope)


def takes(expression: Regex) -> dict[str, RegexStep]:
    """Every step, at its first occurrence."""
    return {take.name: take for take in reversed(steps_in(expression))}


def events_of(node: tree.ParsedRegexQuery, names: Names) -> Stream:
    if node.over is not None:
        return names.find(node.over.name, node.over.at, "stream or event type").as_stream()
    if len(names.feeds) == 1:
        return names.feeds[0][0]
    streams = ", ".join(names.known) or "none"
    raise LanguageError(f"REGEX needs events: write REGEX(…) OVER and the name of a stream (known: {streams})", node.at)


class StepDefinitions:
    """The definitions of the steps of an expression."""

    def __init__(self, node: tree.ParsedRegexQuery, over: Stream) -> None:
        self.over, self.types = over, types_of(over)
        self.registers: dict[str, Number] = {}
        for assignment in node.registers:
            if assignment.name in self.registers:
                raise LanguageError(f"register {assignment.name!r} is declared twice", assignment.at)
            self.registers[assignment.name] = number_of(assignment)
        self.defines: dict[str, tree.ParsedDefine] = {}
        for define in node.defines:
            if define.name in self.defines:
                raise LanguageError(f"step {define.name!r} is defined twice; join the conditions with OR", define.at)
            self.defines[define.name] = define

    def made(self, take: RegexStep) -> AutomatonStep:
        define = self.defines.get(take.name)
        if define is None:
            if self.types is None:
                hint = did_you_mean(take.name, self.defines) or f"; define it with DEFINE {take.name} AS …"
                raise LanguageError(f"there is no step {take.name!r}{hint}", take.at)
            return AutomatonStep(self._of_type(take))
        scope = StepScope(take.name, self.over.schema, self.registers)
        if define.condition is not None:
            when: pl.Expr | None = condition(define.condition, scope).expression
        else:
            when = self._of_type(take) if self.types else None
        step = AutomatonStep(when, tuple(self._set(assignment, scope) for assignment in define.sets))
        with located(define.at):
            compile_steps({take.name: step}, self.registers, self.over.schema, f"step {take.name}")
        return step

    def _of_type(self, take: RegexStep) -> pl.Expr:
        assert self.types is not None
        return of_type(take.name, self.over, self.types, take.at, "step or event type", self.defines)

    def _set(self, assignment: tree.ParsedAssignment, scope: "StepScope") -> tuple[str, pl.Expr]:
        if assignment.name not in self.registers:
            hint = did_you_mean(assignment.name, self.registers)
            begin = "" if hint else f"; declare it with REGISTER {assignment.name} = 0"
            raise LanguageError(f"there is no register {assignment.name!r}{hint}{begin}", assignment.at)
        return assignment.name, compiled(assignment.value, scope).expression

    def check_used(self, used: Iterable[str]) -> None:
        if unused := self.defines.keys() - set(used):
            define = next(d for name, d in self.defines.items() if name in unused)
            raise LanguageError(f"step {define.name!r} is defined, but the expression has no such step", define.at)


def number_of(assignment: tree.ParsedAssignment) -> Number:
    match assignment.value:
        case tree.ParsedNumber(_) as found:
            return found.value
        case tree.ParsedMinus(tree.ParsedNumber(_) as found):
            return -found.value
    raise LanguageError("the initial value of a register is a number, such as n = 0", assignment.value.at)


@dataclass
class StepScope:
    """Names in a step: the columns of its event, alone or after the step's name, and the registers."""

    step: str
    event: Mapping[str, pl.DataType]
    registers: Mapping[str, Number]

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        floating = any(isinstance(value, float) for value in self.registers.values())
        return {**dict.fromkeys(self.registers, pl.Float64() if floating else pl.Int64()), **self.event}

    def column(self, node: tree.ParsedColumn) -> Value:
        if node.variable not in (None, self.step):
            raise LanguageError(
                f"step {self.step} can only use its own event; use a register for values of earlier events", node.at
            )
        names = self.columns if node.variable is None else self.event
        if node.name not in names:
            hint = did_you_mean(node.name, names)
            raise LanguageError(
                f"there is no column or register {node.name!r}{hint} (known: {', '.join(names)})", node.at
            )
        return Value(pl.col(node.name), names[node.name], node)

    def aggregate(self, node: tree.ParsedCall) -> Value | None:
        return None
