"""What steps ask of registers, as programs over numbers.

An instruction is `(op, a, b, c, to)`: addresses of three operands, of which most ops read one or two, and of the
result. Addresses count through the registers, the columns, the constants and the temporary places, in this order.
Truth values are 1 and 0. All numbers of a program are of one type: whole, or floating point if any of them is.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

ADD, SUBTRACT, MULTIPLY, NEGATE, ABS, MIN, MAX, CHOOSE = range(8)
EQ, NE, LT, LE, GT, GE, AND, OR, NOT = range(8, 17)


class Programs(NamedTuple):
    """The programs of all steps: guards as `code[guard[s]:update[s]]`, updates as `code[update[s]:guard[s + 1]]`."""

    code: np.ndarray
    guard: np.ndarray
    update: np.ndarray
    holds: np.ndarray
    """By step the address of the guard's truth value, -1 if there is no guard."""
    set_from: np.ndarray
    sets: np.ndarray
    """`sets[set_from[s]:set_from[s + 1]]`: register and address of its new value."""
    constants: np.ndarray
    temporary: int
    """How many temporary places there are."""


@njit(cache=True)
def memory_of(programs, registers, columns):
    """Room for all addresses, with the constants; registers and columns are filled in run by run."""
    first = registers + columns
    memory = np.empty(first + len(programs.constants) + programs.temporary, dtype=programs.constants.dtype)
    memory[first : first + len(programs.constants)] = programs.constants
    return memory


@njit(cache=True)
def fill(memory, registers, r, columns, content):
    """Let the programs be about run r and an event of this content."""
    width = registers.shape[1]
    for m in range(width):
        memory[m] = registers[r, m]
    for m in range(columns.shape[1]):
        memory[width + m] = columns[content, m]


@njit(cache=True)
def execute(code, first, last, memory):
    """Run instructions."""
    for i in range(first, last):
        op = code[i, 0]
        x, y = memory[code[i, 1]], memory[code[i, 2]]
        to = code[i, 4]
        if op >= EQ:
            memory[to] = 1 if holds(op, x, y) else 0
            continue
        if op == ADD:
            z = x + y
        elif op == SUBTRACT:
            z = x - y
        elif op == MULTIPLY:
            z = x * y
        elif op == NEGATE:
            z = -x
        elif op == ABS:
            z = abs(x)
        elif op == MIN:
            z = min(x, y)
        elif op == MAX:
            z = max(x, y)
        else:
            z = y if x != 0 else memory[code[i, 3]]
        memory[to] = z


@njit(cache=True)
def holds(op, a, b):
    if op == EQ:
        return a == b
    if op == NE:
        return a != b
    if op == LT:
        return a < b
    if op == LE:
        return a <= b
    if op == GT:
        return a > b
    if op == GE:
        return a >= b
    if op == AND:
        return a != 0 and b != 0
    if op == OR:
        return a != 0 or b != 0
    return a == 0
