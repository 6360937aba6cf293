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
    columns: int
    temporary: int


@njit(cache=True, inline="always")
def value(address, registers, columns, constants, temporary):
    if address < len(registers):
        return registers[address]
    address -= len(registers)
    if address < len(columns):
        return columns[address]
    address -= len(columns)
    if address < len(constants):
        return constants[address]
    return temporary[address - len(constants)]


@njit(cache=True)
def execute(code, first, last, registers, columns, constants, temporary):
    """Run instructions; results are in the temporary places."""
    base = len(registers) + len(columns) + len(constants)
    for i in range(first, last):
        op = code[i, 0]
        a = value(code[i, 1], registers, columns, constants, temporary)
        b = value(code[i, 2], registers, columns, constants, temporary)
        if op == ADD:
            r = a + b
        elif op == SUBTRACT:
            r = a - b
        elif op == MULTIPLY:
            r = a * b
        elif op == NEGATE:
            r = -a
        elif op == ABS:
            r = abs(a)
        elif op == MIN:
            r = min(a, b)
        elif op == MAX:
            r = max(a, b)
        elif op == CHOOSE:
            r = b if a != 0 else value(code[i, 3], registers, columns, constants, temporary)
        elif holds(op, a, b):
            temporary[code[i, 4] - base] = 1
            continue
        else:
            temporary[code[i, 4] - base] = 0
            continue
        temporary[code[i, 4] - base] = r


@njit(cache=True, inline="always")
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
