"""Conditions and assignments of steps on registers, as programs over numbers.

An instruction is `(op, a, b, c, to)`: addresses of three operands, of which most ops read one or two, and of the
result. Addresses count through the registers, the columns, the constants and the temporary places, in this order.
Truth values are 1 and 0. All numbers of a program are of one type: whole, or floating point if any of them is.

Every address also has a flag for a missing value, and the instructions treat missing values as SQL does: a comparison
with one is neither true nor false, AND and OR are decided by the side that decides, and CHOOSE takes what is not true
as false. Floating point numbers compare as in polars: NaN equals itself and is larger than every number.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

ADD, SUBTRACT, MULTIPLY, NEGATE, ABS = range(5)
EQ, NE, LT, LE, GT, GE, NOT = range(5, 12)
AND, OR, MIN, MAX, CHOOSE, COALESCE, IS_NULL, IS_NOT_NULL, EQ_MISSING, NE_MISSING = range(12, 22)
"""The first two rows give a missing value if an operand is missing."""


class Programs(NamedTuple):
    """The programs of all steps: guards as `code[guard[s]:update[s]]`, updates as `code[update[s]:guard[s + 1]]`."""

    code: np.ndarray
    guard: np.ndarray
    update: np.ndarray
    holds: np.ndarray
    """By step the address of the guard's truth value, -1 without a guard."""
    set_from: np.ndarray
    sets: np.ndarray
    """`sets[set_from[s]:set_from[s + 1]]`: register and address of its new value."""
    constants: np.ndarray
    absent: np.ndarray
    """Which constants are missing values."""
    temporary: int
    """How many temporary places there are."""


@njit(cache=True)
def memory_of(programs, registers, columns):
    """Room for all addresses, with the constants; registers and columns are filled in run by run."""
    first = registers + columns
    size = first + len(programs.constants) + programs.temporary
    values = np.empty(size, dtype=programs.constants.dtype)
    missing = np.zeros(size, dtype=np.bool_)
    values[first : first + len(programs.constants)] = programs.constants
    missing[first : first + len(programs.constants)] = programs.absent
    return values, missing


@njit(cache=True)
def fill(memory, registers, r, nulls, columns, absent, content):
    """Set the registers of run r, of which the bits of `nulls` are missing, and the columns of an event's content."""
    values, missing = memory
    width = registers.shape[1]
    for m in range(width):
        values[m] = registers[r, m]
        missing[m] = (nulls >> m) & 1
    for m in range(columns.shape[1]):
        values[width + m] = columns[content, m]
        missing[width + m] = absent[content, m]


@njit(cache=True)
def is_true(memory, address):
    values, missing = memory
    return values[address] != 0 and not missing[address]


@njit(cache=True)
def execute(code, first, last, memory):
    """Run instructions."""
    values, missing = memory
    for i in range(first, last):
        op, a, b, c, to = code[i, 0], code[i, 1], code[i, 2], code[i, 3], code[i, 4]
        if op < EQ:
            values[to] = number(op, values[a], values[b])
            missing[to] = missing[a] or missing[b]
        elif op < AND:
            values[to] = 1 if holds(op, values[a], values[b]) else 0
            missing[to] = missing[a] or missing[b]
        elif op in (AND, OR):
            decides = op == OR
            decided = (not missing[a] and (values[a] != 0) == decides) or (
                not missing[b] and (values[b] != 0) == decides
            )
            values[to] = 1 if decided == decides else 0
            missing[to] = not decided and (missing[a] or missing[b])
        elif op in (IS_NULL, IS_NOT_NULL):
            values[to] = 1 if missing[a] == (op == IS_NULL) else 0
            missing[to] = False
        elif op in (EQ_MISSING, NE_MISSING):
            equal = missing[a] == missing[b] and (missing[a] or same(values[a], values[b]))
            values[to] = 1 if equal == (op == EQ_MISSING) else 0
            missing[to] = False
        else:
            one = chosen(op, a, b, c, memory)
            values[to], missing[to] = values[one], missing[one]


@njit(cache=True)
def number(op, x, y):
    if op == ADD:
        return x + y
    if op == SUBTRACT:
        return x - y
    if op == MULTIPLY:
        return x * y
    return -x if op == NEGATE else abs(x)


@njit(cache=True)
def holds(op, a, b):
    if op == EQ:
        return same(a, b)
    if op == NE:
        return not same(a, b)
    if op == LT:
        return less(a, b)
    if op == LE:
        return not less(b, a)
    if op == GT:
        return less(b, a)
    if op == GE:
        return not less(a, b)
    return a == 0


@njit(cache=True)
def same(a, b):
    return a == b or (a != a and b != b)


@njit(cache=True)
def less(a, b):
    return a < b or (b != b and a == a)


@njit(cache=True)
def chosen(op, a, b, c, memory):
    """The address of the operand that is the result."""
    values, missing = memory
    if op == CHOOSE:
        return b if is_true(memory, a) else c
    if missing[a] or missing[b]:
        return b if missing[a] else a
    if op == MIN:
        return b if values[b] < values[a] else a
    if op == MAX:
        return b if values[b] > values[a] else a
    return a
