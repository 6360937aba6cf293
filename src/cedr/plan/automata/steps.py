"""Steps: what an event must be to take a transition, and what it does to the registers.

A condition about the event alone is a column that polars computes for all events of a chunk. What reads registers
can only be evaluated run by run, so it becomes a small program; within it, parts that do not read registers are columns
again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add, and_, eq, ge, gt, le, lt, mul, ne, or_, sub
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cedr.kernels.automata import programs as p
from cedr.plan.automata.compiled import CompiledSteps
from cedr.plan.schema import Schema, conjuncts, show_expression
from cedr.temporal.errors import QueryError

BINARY = {
    add: p.ADD, sub: p.SUBTRACT, mul: p.MULTIPLY, eq: p.EQ, ne: p.NE, lt: p.LT, le: p.LE, gt: p.GT, ge: p.GE,
    and_: p.AND, or_: p.OR, pl.Expr.eq_missing: p.EQ_MISSING, pl.Expr.ne_missing: p.NE_MISSING,
}  # fmt: skip
CLOSED = {"both": (p.GE, p.LE), "left": (p.GE, p.LT), "right": (p.GT, p.LE), "none": (p.GT, p.LT)}
POSSIBLE = (
    "+, -, *, comparisons, &, |, ~, abs, is_between, is_null, is_not_null, coalesce, min_horizontal, max_horizontal "
    "and when/then/otherwise"
)
MOST_STEPS = 62
"""Which steps an event can take are the bits of one number."""
MOST_REGISTERS = 62
"""Which registers are missing are the bits of one number."""


@dataclass(frozen=True)
class AutomatonStep:
    """An event takes the step if `when` holds, of its columns and the registers; then it sets registers."""

    when: pl.Expr | None = None
    updates: tuple[tuple[str, pl.Expr], ...] = ()

    @property
    def expressions(self) -> list[pl.Expr]:
        return [*([] if self.when is None else [self.when]), *(e for _, e in self.updates)]


class Address(NamedTuple):
    kind: str
    """register, column, constant or temporary."""
    number: int


@dataclass
class Compiler:
    """Turns expressions of registers into programs; the columns and constants they need collect on the way."""

    registers: Sequence[str]
    schema: Schema
    """Of events and registers together."""
    columns: list[pl.Expr] = field(default_factory=list)
    constants: list[float | None] = field(default_factory=list)
    code: list[tuple[int, Address, Address, Address, Address]] = field(default_factory=list)
    temporary: int = 0

    def reads_registers(self, e: pl.Expr) -> bool:
        return not set(e.meta.root_names()).isdisjoint(self.registers)

    def compiled(self, e: pl.Expr) -> Address:
        e = e.meta.undo_aliases()
        if not self.reads_registers(e):
            return self.constant(e) if e.meta.is_literal() else self.column(e)
        if e.meta.is_column():
            return Address("register", self.registers.index(e.meta.output_name()))
        operands = list(reversed(e.meta.pop()))
        match operands:
            case [one]:
                return self.unary(e, one)
            case [left, right]:
                for function, op in BINARY.items():
                    if function(left, right).meta.eq(e):
                        self.check_logic(op, e, left, right)
                        return self.put(op, self.compiled(left), self.compiled(right))
        return self.special(e, operands)

    def unary(self, e: pl.Expr, one: pl.Expr) -> Address:
        known = (p.NEGATE, -one), (p.ABS, one.abs()), (p.NOT, ~one), (p.IS_NULL, one.is_null())
        for op, candidate in (*known, (p.IS_NOT_NULL, one.is_not_null())):
            if candidate.meta.eq(e):
                self.check_logic(op, e, one)
                return self.put(op, self.compiled(one))
        raise self.unknown(e)

    def special(self, e: pl.Expr, operands: list[pl.Expr]) -> Address:
        for op, function in ((p.MIN, pl.min_horizontal), (p.MAX, pl.max_horizontal), (p.COALESCE, pl.coalesce)):
            if function(*operands).meta.eq(e):
                return reduce(lambda a, b: self.put(op, a, b), map(self.compiled, operands))
        if len(operands) == 3:
            one, two, three = operands
            if pl.when(three).then(one).otherwise(two).meta.eq(e):
                return self.put(p.CHOOSE, *(self.compiled(o) for o in (three, one, two)))
            for closed, (from_below, from_above) in CLOSED.items():
                if one.is_between(two, three, closed=closed).meta.eq(e):  # type: ignore[arg-type]
                    x, low, high = (self.compiled(o) for o in operands)
                    return self.put(p.AND, self.put(from_below, x, low), self.put(from_above, x, high))
        raise self.unknown(e)

    def put(self, op: int, a: Address, b: Address | None = None, c: Address | None = None) -> Address:
        to = Address("temporary", self.temporary)
        self.temporary += 1
        self.code.append((op, a, b or a, c or a, to))
        return to

    def constant(self, e: pl.Expr) -> Address:
        value = pl.select(e).item()
        if value is not None and not isinstance(value, bool | int | float):
            raise QueryError(f"{show_expression(e)} is combined with a register, but is not a number")
        self.constants.append(value)
        return Address("constant", len(self.constants) - 1)

    def column(self, e: pl.Expr) -> Address:
        number = next((i for i, known in enumerate(self.columns) if known.meta.eq(e)), len(self.columns))
        if number == len(self.columns):
            check_number(e, self.type_of(e))
            self.columns.append(e)
        return Address("column", number)

    def type_of(self, e: pl.Expr) -> pl.DataType:
        return pl.DataFrame(schema=dict(self.schema)).select(e.alias("x")).schema["x"]

    def check_logic(self, op: int, e: pl.Expr, *operands: pl.Expr) -> None:
        if op in (p.AND, p.OR, p.NOT) and any(self.type_of(o) != pl.Boolean for o in operands):
            raise QueryError(f"{show_expression(e)} works on the bits of numbers; &, | and ~ take comparisons here")

    def unknown(self, e: pl.Expr) -> QueryError:
        return QueryError(f"{show_expression(e)} cannot be computed from registers; there are {POSSIBLE}")

    # --- the whole -----------------------------------------------------------------------------------------------

    @property
    def floating(self) -> bool:
        """Is any number a floating point number?"""
        kinds = [self.type_of(e) for e in self.columns]
        return any(isinstance(c, float) for c in self.constants) or any(k.is_float() for k in kinds)

    def resolved(self, address: Address) -> int:
        columns = len(self.registers)
        constants = columns + len(self.columns)
        temporary = constants + len(self.constants)
        base = {"register": 0, "column": columns, "constant": constants, "temporary": temporary}
        return base[address.kind] + address.number


def compile_steps(
    steps: Mapping[str, AutomatonStep], registers: Mapping[str, float], schema: Schema, what: str
) -> CompiledSteps:
    floating = any(isinstance(value, float) for value in registers.values())
    while True:
        kind = pl.Float64() if floating else pl.Int64()
        compiler = Compiler(list(registers), {**schema, **dict.fromkeys(registers, kind)})
        try:
            found = assembled(steps, compiler, np.float64 if floating else np.int64, registers)
        except QueryError as e:
            raise QueryError(f"{what}: {e}") from None
        if floating or not compiler.floating:
            return found
        floating = True


def assembled(
    steps: Mapping[str, AutomatonStep], compiler: Compiler, kind: Any, registers: Mapping[str, float]
) -> CompiledSteps:
    conditions, guard, update, holds, set_from, sets = [], [], [], [], [0], []
    for step in steps.values():
        guard.append(len(compiler.code))
        alone, of_runs = divided(step, compiler)
        truth = [compiler.compiled(e) for e in of_runs]
        both = reduce(lambda a, b: compiler.put(p.AND, a, b), truth) if truth else None
        holds.append(both)
        update.append(len(compiler.code))
        for name, e in step.updates:
            sets.append((Address("register", compiler.registers.index(name)), compiler.compiled(e)))
        set_from.append(len(sets))
        conditions.append(reduce(and_, alone, pl.lit(True)).fill_null(False))
    guard.append(len(compiler.code))
    at = compiler.resolved
    numbers = [[op, *map(at, addresses)] for op, *addresses in compiler.code]
    built = p.Programs(
        np.array(numbers, dtype=np.int64).reshape(-1, 5),
        np.array(guard, dtype=np.int64),
        np.array(update, dtype=np.int64),
        np.array([-1 if h is None else at(h) for h in holds], dtype=np.int64),
        np.array(set_from, dtype=np.int64),
        np.array([[at(register), at(value)] for register, value in sets], dtype=np.int64).reshape(-1, 2),
        np.array([c or 0 for c in compiler.constants], dtype=kind),
        np.array([c is None for c in compiler.constants], dtype=np.bool_),
        compiler.temporary,
    )
    initial = np.array([registers[name] for name in registers], dtype=kind)
    return CompiledSteps(tuple(steps), tuple(conditions), tuple(compiler.columns), built, tuple(registers), initial)


def divided(step: AutomatonStep, compiler: Compiler) -> tuple[list[pl.Expr], list[pl.Expr]]:
    """The conditions of a step about the event alone, and those about registers."""
    parts = [] if step.when is None else conjuncts(step.when)
    return [e for e in parts if not compiler.reads_registers(e)], register_conditions(step, compiler.registers)


def register_conditions(step: AutomatonStep, registers: Sequence[str]) -> list[pl.Expr]:
    """The conditions of a step that can only be evaluated run by run."""
    parts = [] if step.when is None else conjuncts(step.when)
    return [e for e in parts if not set(e.meta.root_names()).isdisjoint(registers)]


def check_number(e: pl.Expr, kind: pl.DataType) -> None:
    if kind != pl.Boolean and not kind.is_float() and (not kind.is_integer() or kind in (pl.UInt64, pl.Int128)):
        raise QueryError(f"{show_expression(e)} is {kind}; registers are numbers, so cast it to Int64 or Float64 first")
