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
def value(address, registers, r, columns, content, constants, temporary):
    """What stands at an address, for run r and an event of this content."""
    if address < registers.shape[1]:
        return registers[r, address]
    address -= registers.shape[1]
    if address < columns.shape[1]:
        return columns[content, address]
    address -= columns.shape[1]
    if address < len(constants):
        return constants[address]
    return temporary[address - len(constants)]


@njit(cache=True)
def execute(code, first, last, registers, r, columns, content, constants, temporary):
    """Run instructions; results are in the temporary places."""
    base = registers.shape[1] + columns.shape[1] + len(constants)
    for i in range(first, last):
        op = code[i, 0]
        x = value(code[i, 1], registers, r, columns, content, constants, temporary)
        y = value(code[i, 2], registers, r, columns, content, constants, temporary)
        to = code[i, 4] - base
        if op >= EQ:
            temporary[to] = 1 if holds(op, x, y) else 0
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
            z = y if x != 0 else value(code[i, 3], registers, r, columns, content, constants, temporary)
        temporary[to] = z


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
