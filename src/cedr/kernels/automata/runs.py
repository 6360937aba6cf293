"""The runs of an automaton that begin at some places; see `cedr.reference.automata` for what a run is.

The runs of many places advance together, one event in each round; those of one place are adjacent. Runs that begin at
one place and have the same state, registers and lifetime continue alike, so they are kept as one with a count. That
keeps the number of runs small where an automaton can take the same events in many ways.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from cedr.kernels.automata.places import AT, CONTENT, COPIES, VE, VS, G, end_of_place
from cedr.kernels.automata.programs import execute, fill, is_true, memory_of


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
    emits: np.ndarray
    """By state, whether runs that end there are emitted."""
    start: int


class Contents(NamedTuple):
    """Properties of events, by the number of their content."""

    symbol: np.ndarray
    accepts: np.ndarray
    """The steps whose conditions about the event alone hold, by bits."""
    columns: np.ndarray
    """What programs read."""
    absent: np.ndarray
    """Which of that is missing."""


STATE, LO, HI, COUNT, NUMBER, FIRST, LAST, NULLS = range(8)
"""What is kept of a run. NUMBER is that of the place where it began, FIRST and LAST the rows it may take next; after
the seeds, what it took last. The bits of NULLS are the registers that are missing; their values are 0."""
BEGIN, END, OUT_STATE, OUT_COUNT, OUT_LO, OUT_HI, OUT_GROUP, OUT_NULLS = range(8)

AT_ONCE = 1024
"""Places whose runs go on together; with more of them the runs leave the fast memory of the processor."""


@njit(cache=True)
def runs_from(rows, places, since, contents, table, programs, initial, by_number, once):
    """The results of the runs from these places that end at `since` or later, and how far the runs reach.

    Places are given by their first row. `by_number`: places are sequence numbers. `once`: of runs with the same output
    and start, whatever their state, only the longest is emitted.
    """
    reach = np.empty(len(places), dtype=np.int64)
    out = np.empty((64, 8), dtype=np.int64)
    out_registers = np.empty((64, len(initial)), dtype=initial.dtype)
    emitted = 0
    for block in range(0, len(places), AT_ONCE):
        numbers = range(block, min(block + AT_ONCE, len(places)))
        runs, registers = seeded(rows, places, numbers, contents, table, initial, reach)
        length = 0
        while len(runs):
            while len(out) < emitted + len(runs):
                out, out_registers = doubled(out), doubled(out_registers)
            emitted = emit(rows, places, since, runs, registers, length, table.emits, once, out, out_registers, emitted)
            if length:
                go_on(rows, runs, by_number, reach)
            runs, registers = step(rows, runs, registers, contents, table, programs)
            length += 1
    return out[:emitted], out_registers[:emitted], reach


@njit(cache=True)
def seeded(rows, places, numbers, contents, table, initial, reach):
    """Empty runs, one before each event of a place, which is the event it may take; without those that neither emit
    a result nor can take their event."""
    size = 0
    for k in numbers:
        size += end_of_place(rows, places[k]) - places[k]
    runs = np.empty((size, 8), dtype=np.int64)
    registers = np.empty((size, len(initial)), dtype=initial.dtype)
    start, emits = table.start, table.emits[table.start]
    r = 0
    for k in numbers:
        reach[k] = rows[places[k], AT]
        for row in range(places[k], end_of_place(rows, places[k])):
            if not emits and not can_begin(rows[row, CONTENT], contents.symbol, contents.accepts, table):
                continue
            runs[r, STATE], runs[r, NUMBER], runs[r, COUNT], runs[r, NULLS] = start, k, 1, 0
            runs[r, LO], runs[r, HI], runs[r, FIRST], runs[r, LAST] = rows[row, VS], rows[row, VE], row, row + 1
            for m in range(len(initial)):
                registers[r, m] = initial[m]
            r += 1
    return runs[:r], registers[:r]


@njit(cache=True)
def can_begin(content, symbols, accepts, table):
    """Whether some row of the table lets an event be the first, registers and times aside."""
    for t in range(table.first[table.start], table.first[table.start + 1]):
        s = table.step[t]
        if (table.symbol[t] < 0 or table.symbol[t] == symbols[content]) and (s < 0 or (accepts[content] >> s) & 1):
            return True
    return False


@njit(cache=True)
def go_on(rows, runs, by_number, reach):
    """Let runs look at the next place, which is none if it cannot follow; and note how far those of a place look."""
    r = 0
    while r < len(runs):
        number, last = runs[r, NUMBER], runs[r, LAST]
        end, latest = r, runs[r, HI]
        while end < len(runs) and runs[end, NUMBER] == number:
            latest = max(latest, runs[end, HI])
            end += 1
        there = last < len(rows) and rows[last, G] == rows[last - 1, G]
        if by_number:
            reach[number] = rows[last - 1, AT] + 1
        else:
            reach[number] = min(latest, rows[last, AT]) if there else latest
        there = there and rows[last, AT] <= reach[number]
        after = end_of_place(rows, last) if there else last
        for i in range(r, end):
            runs[i, FIRST], runs[i, LAST] = last, after
        r = end


@njit(cache=True)
def step(rows, runs, registers, contents, table, programs):
    """What the runs become when each takes one event that it may take."""
    code, guard, change = programs.code, programs.guard, programs.update
    holds, set_from, sets = programs.holds, programs.set_from, programs.sets
    symbols, accepts, columns, absent = contents.symbol, contents.accepts, contents.columns, contents.absent
    table_first, target, symbol, steps = table.first, table.target, table.symbol, table.step
    table_vs, table_ve, table_copies = table.vs, table.ve, table.copies
    width = registers.shape[1]
    memory = memory_of(programs, width, columns.shape[1])
    most = 1
    for r in range(len(runs)):
        ways = table_first[runs[r, STATE] + 1] - table_first[runs[r, STATE]]
        most += (runs[r, LAST] - runs[r, FIRST]) * ways
    grown = np.empty((most, 8), dtype=np.int64)
    grown_registers = np.empty((most, width), dtype=registers.dtype)
    size = mark = 0
    for r in range(len(runs)):
        state, number = runs[r, STATE], runs[r, NUMBER]
        if r == 0 or number != runs[r - 1, NUMBER]:
            mark = size
        for row in range(runs[r, FIRST], runs[r, LAST]):
            content = rows[row, CONTENT]
            fill(memory, registers, r, runs[r, NULLS], columns, absent, content)
            lo, hi = max(runs[r, LO], rows[row, VS]), min(runs[r, HI], rows[row, VE])
            for t in range(table_first[state], table_first[state + 1]):
                s = steps[t]
                if (symbol[t] >= 0 and symbol[t] != symbols[content]) or (s >= 0 and not (accepts[content] >> s) & 1):
                    continue
                begin, end = max(lo, table_vs[t]), min(hi, table_ve[t])
                if begin >= end:
                    continue
                if s >= 0 and holds[s] >= 0:
                    execute(code, guard[s], change[s], memory)
                    if not is_true(memory, holds[s]):
                        continue
                nulls = runs[r, NULLS]
                for m in range(width):
                    grown_registers[size, m] = registers[r, m]
                if s >= 0 and set_from[s] < set_from[s + 1]:
                    execute(code, change[s], guard[s + 1], memory)
                    values, missing = memory
                    for i in range(set_from[s], set_from[s + 1]):
                        one = np.int64(1) << sets[i, 0]
                        gone = missing[sets[i, 1]]
                        nulls = nulls | one if gone else nulls & ~one
                        grown_registers[size, sets[i, 0]] = 0 if gone else values[sets[i, 1]]
                grown[size, NULLS] = nulls
                grown[size, STATE], grown[size, LO], grown[size, HI], grown[size, NUMBER] = (
                    target[t],
                    begin,
                    end,
                    number,
                )
                grown[size, COUNT] = runs[r, COUNT] * rows[row, COPIES] * table_copies[t]
                grown[size, LAST] = end_of_place(rows, row)
                same = find(grown, grown_registers, mark, size)
                if same < size:
                    grown[same, COUNT] += grown[size, COUNT]
                else:
                    size += 1
    return grown[:size], grown_registers[:size]


@njit(cache=True)
def find(runs, registers, mark, last):
    """The first run from `mark` on that goes on like the last one."""
    for r in range(mark, last):
        if (
            runs[r, STATE] == runs[last, STATE]
            and runs[r, LO] == runs[last, LO]
            and runs[r, HI] == runs[last, HI]
            and runs[r, NULLS] == runs[last, NULLS]
            and equal(registers, r, registers, last)
        ):
            return r
    return last


@njit(cache=True)
def equal(a, i, b, j):
    """NaN equals NaN, as everywhere in payloads."""
    for m in range(a.shape[1]):  # noqa: SIM110 compiled code has no generators
        if a[i, m] != b[j, m] and (a[i, m] == a[i, m] or b[j, m] == b[j, m]):
            return False
    return True


@njit(cache=True)
def emit(rows, places, since, runs, registers, length, states, once, out, out_registers, emitted):
    """Add runs that end in a state that emits; with `once`, only the longest of those of a place with equal output."""
    mark = emitted
    for r in range(len(runs)):
        number = runs[r, NUMBER]
        if r == 0 or number != runs[r - 1, NUMBER]:
            mark = emitted
        if not states[runs[r, STATE]]:
            continue
        begin = rows[places[number], AT]
        end = rows[runs[r, LAST] - 1, AT]
        if end < since[number]:
            continue
        same = first_equal(out, out_registers, mark, emitted, runs, registers, r) if once else emitted
        if same < emitted:
            out[same, OUT_HI] = max(out[same, OUT_HI], runs[r, HI])
            continue
        out[emitted, BEGIN], out[emitted, OUT_STATE], out[emitted, OUT_GROUP] = (
            begin,
            runs[r, STATE],
            rows[places[number], G],
        )
        out[emitted, END] = end if length else begin - 1
        out[emitted, OUT_LO], out[emitted, OUT_HI] = runs[r, LO], runs[r, HI]
        out[emitted, OUT_COUNT] = 1 if once else runs[r, COUNT] if length else rows[runs[r, FIRST], COPIES]
        out[emitted, OUT_NULLS] = runs[r, NULLS]
        for m in range(registers.shape[1]):
            out_registers[emitted, m] = registers[r, m]
        emitted += 1
    return emitted


@njit(cache=True)
def first_equal(out, out_registers, since, emitted, runs, registers, r):
    """The first result from `since` on with the same output and start as a run; `emitted` if there is none."""
    for i in range(since, emitted):
        alike = out[i, OUT_LO] == runs[r, LO] and out[i, OUT_NULLS] == runs[r, NULLS]
        if alike and equal(out_registers, i, registers, r):
            return i
    return emitted


@njit(cache=True)
def doubled(rows):
    larger = np.empty((2 * len(rows), rows.shape[1]), dtype=rows.dtype)
    larger[: len(rows)] = rows
    return larger
