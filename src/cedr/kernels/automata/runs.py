"""The runs of an automaton that begin at some places, place after place; see `cedr.reference.automata` for what a run is.

All runs that begin at a place and have come to the same place, state, registers and lifetime go on alike, so they are
kept as one with their number. That keeps their number small where an automaton can take the same events in many ways.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from cedr.kernels.automata.places import AT, CONTENT, COPIES, VE, VS, G, end_of_place
from cedr.kernels.automata.programs import execute, value
from cedr.temporal.time import INF


class Table(NamedTuple):
    """The transition table: rows `first[s]` to `first[s + 1]` lead out of state s."""

    first: np.ndarray
    target: np.ndarray
    symbol: np.ndarray
    """The number of the symbol an event must have, -1 for any."""
    step: np.ndarray
    """The number of the step it must take, -1 for none."""
    vs: np.ndarray
    ve: np.ndarray
    copies: np.ndarray
    told: np.ndarray
    """By state, whether runs that end there are told."""
    start: int


class Contents(NamedTuple):
    """What is known of events, by the number of their content."""

    symbol: np.ndarray
    accepts: np.ndarray
    """The steps whose conditions about the event alone hold, by bits."""
    columns: np.ndarray
    """What programs read."""


STATE, LO, HI, COUNT = range(4)
BEGIN, END, OUT_STATE, OUT_COUNT, OUT_LO, OUT_HI, OUT_GROUP = range(7)


@njit(cache=True)
def runs_from(rows, places, since, contents, table, programs, initial, by_number, once):
    """What is told of the runs from these places, as far as they end at `since` or later; and how far they reach.

    Places are given by their first row. `by_number`: places are sequence numbers. `once`: runs that show the same, the
    state aside, are told once.
    """
    reach = np.empty(len(places), dtype=np.int64)
    out = np.empty((64, 7), dtype=np.int64)
    out_registers = np.empty((64, len(initial)), dtype=initial.dtype)
    told = 0
    temporary = np.empty(programs.temporary, dtype=initial.dtype)
    changed = np.empty(len(initial), dtype=initial.dtype)
    runs = np.empty((8, 4), dtype=np.int64)
    registers = np.empty((8, len(initial)), dtype=initial.dtype)
    grown = np.empty((8, 4), dtype=np.int64)
    grown_registers = np.empty((8, len(initial)), dtype=initial.dtype)
    seed = np.empty((1, 4), dtype=np.int64)
    seed_registers = np.empty((1, len(initial)), dtype=initial.dtype)
    seed_registers[0] = initial
    for k in range(len(places)):
        first = places[k]
        last = end_of_place(rows, first)
        g, begin = rows[first, G], rows[first, AT]
        size = 0
        for row in range(first, last):
            seed[0, STATE], seed[0, COUNT] = table.start, 1
            seed[0, LO], seed[0, HI] = rows[row, VS], rows[row, VE]
            if table.told[table.start] and begin >= since[k]:
                for _ in range(rows[row, COPIES]):
                    out, out_registers, told = tell(
                        out, out_registers, told, seed, seed_registers, 0, g, begin, begin - 1, told
                    )
            runs, registers, size = take(
                rows, row, seed, seed_registers, 0, contents, table, programs, temporary, changed, runs, registers, size
            )
        at = begin
        reach[k] = begin
        while size:
            if at >= since[k]:
                mark = told
                for r in range(size):
                    if table.told[runs[r, STATE]]:
                        seen = mark if once else told
                        out, out_registers, told = tell(
                            out, out_registers, told, runs, registers, r, g, begin, at, seen
                        )
            there = last < len(rows) and rows[last, G] == g
            if by_number:
                reach[k] = at + 1
                there = there and rows[last, AT] == at + 1
            else:
                reach[k] = rows[last, AT] if there else INF
                reach[k] = min(reach[k], runs[:size, HI].max())
                there = there and rows[last, AT] <= reach[k]
            if not there:
                break
            first, last = last, end_of_place(rows, last)
            at = rows[first, AT]
            grown_size = 0
            for r in range(size):
                for row in range(first, last):
                    grown, grown_registers, grown_size = take(
                        rows, row, runs, registers, r, contents, table, programs, temporary, changed, grown,
                        grown_registers, grown_size,
                    )  # fmt: skip
            runs, grown = grown, runs
            registers, grown_registers = grown_registers, registers
            size = grown_size
    return out[:told], out_registers[:told], reach


@njit(cache=True)
def take(
    rows, row, runs, registers, r, contents, table, programs, temporary, changed, grown, grown_registers, size
):  # fmt: skip
    """Add to `grown` what run r becomes when it takes an event."""
    state = runs[r, STATE]
    content = rows[row, CONTENT]
    lo, hi = max(runs[r, LO], rows[row, VS]), min(runs[r, HI], rows[row, VE])
    if lo >= hi:
        return grown, grown_registers, size
    for t in range(table.first[state], table.first[state + 1]):
        if table.symbol[t] >= 0 and table.symbol[t] != contents.symbol[content]:
            continue
        step = table.step[t]
        if step >= 0:
            if not (contents.accepts[content] >> step) & 1:
                continue
            if not passes(programs, step, registers[r], contents.columns[content], temporary):
                continue
        begin, end = max(lo, table.vs[t]), min(hi, table.ve[t])
        if begin >= end:
            continue
        changed[:] = registers[r]
        if step >= 0:
            update(programs, step, registers[r], contents.columns[content], temporary, changed)
        count = runs[r, COUNT] * rows[row, COPIES] * table.copies[t]
        same = find(grown, grown_registers, size, table.target[t], begin, end, changed)
        if same >= 0:
            grown[same, COUNT] += count
            continue
        if size == len(grown):
            grown, grown_registers = doubled(grown), doubled(grown_registers)
        grown[size, STATE], grown[size, LO], grown[size, HI], grown[size, COUNT] = table.target[t], begin, end, count
        grown_registers[size] = changed
        size += 1
    return grown, grown_registers, size


@njit(cache=True)
def passes(programs, step, registers, columns, temporary):
    at = programs.holds[step]
    if at < 0:
        return True
    first, last = programs.guard[step], programs.update[step]
    execute(programs.code, first, last, registers, columns, programs.constants, temporary)
    return value(at, registers, columns, programs.constants, temporary) != 0


@njit(cache=True)
def update(programs, step, registers, columns, temporary, changed):
    first, last = programs.update[step], programs.guard[step + 1]
    execute(programs.code, first, last, registers, columns, programs.constants, temporary)
    for s in range(programs.set_from[step], programs.set_from[step + 1]):
        changed[programs.sets[s, 0]] = value(programs.sets[s, 1], registers, columns, programs.constants, temporary)


@njit(cache=True)
def find(runs, registers, size, state, lo, hi, wanted):
    for r in range(size):
        if runs[r, STATE] == state and runs[r, LO] == lo and runs[r, HI] == hi and equal(registers[r], wanted):
            return r
    return -1


@njit(cache=True)
def equal(a, b):
    """NaN equals NaN, as everywhere in payloads."""
    for i in range(len(a)):
        if a[i] != b[i] and (a[i] == a[i] or b[i] == b[i]):
            return False
    return True


@njit(cache=True)
def tell(out, out_registers, told, runs, registers, r, g, begin, end, since):
    """Add a run to what is told, unless one that shows the same is there from `since` on."""
    lo, hi = runs[r, LO], runs[r, HI]
    for i in range(since, told):
        if out[i, OUT_LO] == lo and out[i, OUT_HI] == hi and equal(out_registers[i], registers[r]):
            return out, out_registers, told
    if told == len(out):
        out, out_registers = doubled(out), doubled(out_registers)
    out[told, BEGIN], out[told, END], out[told, OUT_STATE] = begin, end, runs[r, STATE]
    out[told, OUT_LO], out[told, OUT_HI], out[told, OUT_GROUP] = lo, hi, g
    out[told, OUT_COUNT] = runs[r, COUNT]
    out_registers[told] = registers[r]
    return out, out_registers, told + 1


@njit(cache=True)
def doubled(rows):
    larger = np.empty((2 * len(rows), rows.shape[1]), dtype=rows.dtype)
    larger[: len(rows)] = rows
    return larger
