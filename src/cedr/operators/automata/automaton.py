"""The native automaton: all runs over the events of each key, repaired when events or the table change.

The runs that begin at a place depend on the events at the places they look at, up to where the last of them ended. So
a change concerns the places before it whose runs reach it: their answers from the first change on are computed from
the events, and the table, before and after, and the difference is emitted. Nothing that was emitted is kept. Where a
chunk is small compared with the state, only the events near its changes are looked at.

Later events neither end a run nor retract one if they arrive in order, so results are emitted at once: perfect input
gives perfect output at any latency. One case is different: of runs with the same output a regular expression emits only
the longest, which may come after the others if two events are at one place. An answer to the time of a CTI is right, as
a run begins with the start of its last event or of a row of the table, and ends with the first end of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.index import RowIndex
from cedr.columnar.state import BLOCKS, MATRIX, PART, array, counted, elsewhere, fields
from cedr.columnar.times import later
from cedr.kernels.automata import places as pl_
from cedr.kernels.automata import runs as rn
from cedr.kernels.automata.changes import cancelled, changes
from cedr.operators.automata.contents import ContentIndex
from cedr.operators.automata.levels import RunLevels
from cedr.operators.automata.transitions import Transitions
from cedr.operators.base import Operator
from cedr.operators.front import Front
from cedr.operators.join import NOTHING_HELD
from cedr.operators.synopsis import OutputOrder
from cedr.plan.automata.compiled import CompiledSteps, Numbers, Shape
from cedr.temporal.time import INF, MIN

Rows = np.ndarray


class RunResults(NamedTuple):
    """Results of runs: places, state and lifetime of each, and its registers."""

    runs: Times
    registers: Numbers

    def of_groups(self, groups: Callable[[Times], Times]) -> None:
        """Replace numbers by the groups that they stand for."""
        self.runs[:, rn.OUT_GROUP] = groups(self.runs[:, rn.OUT_GROUP])

    def words(self) -> Times:
        """What makes a tuple, with its end last; the number of copies is not among it."""
        columns = (rn.OUT_GROUP, rn.BEGIN, rn.END, rn.OUT_STATE, rn.OUT_LO, rn.OUT_NULLS)
        numbers = np.ascontiguousarray(self.registers).view(np.int64)
        return np.hstack((self.runs[:, columns], numbers, self.runs[:, [rn.OUT_HI]]))


class AutomatonOperator(Operator):
    """Port 0 brings events; port 1, if the table is not fixed, its rows."""

    state = fields(
        transitions=PART,
        groups=PART,
        content_index=PART,
        events=elsewhere(MATRIX),
        reach=elsewhere(array(in_place=True)),
        levels=counted(BLOCKS),
        order=PART,
        front=PART,
    )
    """The transitions come first: they number the symbols that contents refer to. Levels are saved as one."""

    def __init__(
        self,
        schema: Mapping[str, pl.DataType],
        reads: tuple[str, ...],
        table: pl.DataFrame | Mapping[str, pl.DataType],
        steps: CompiledSteps,
        shape: Shape,
        output: Mapping[str, pl.DataType],
    ) -> None:
        """`reads`: the columns of events that steps and symbols look at; `table`: its rows, or only its columns."""
        fixed = table if isinstance(table, pl.DataFrame) else None
        self.ports = 1 if fixed is not None else 2
        super().__init__()
        self.schema, self.shape, self.steps = dict(output), shape, steps
        kinds = table.schema if isinstance(table, pl.DataFrame) else table
        self.transitions = Transitions(kinds["source"], kinds["symbol"], fixed, shape, steps)
        self.content_index = ContentIndex(
            {name: schema[name] for name in reads}, shape.symbol, steps, self.transitions.symbols
        )
        self.groups = RowIndex({name: schema[name] for name in shape.by})
        same = {name: name for name in shape.by}
        self.front = Front(self, self.groups, [same, {}][: self.ports])
        self.levels = RunLevels()
        self.order = OutputOrder()

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        self.order.watch(chunk, self.promised[port])
        if not len(chunk):
            old = new = None
        elif port == 0:
            old, new = self._take_events(chunk)
        else:
            old, new = self._take_transitions(chunk)
        self.front.advance(port, chunk)
        settled = self.front.settle(NOTHING_HELD)
        promises = self.front.passed(self.cti, len(chunk))
        out = replace(self._difference(old, new), promises=promises)
        if chunk.cti != MIN or len(chunk.promises):
            self._forget(settled, len(chunk))
        return out

    # --- what comes in -------------------------------------------------------------------------------------------

    def _take_events(self, chunk: Chunk) -> tuple[RunResults | None, RunResults | None]:
        came = self._changes(chunk)
        if not len(came):
            return None, None
        return self._near(came) if self.levels.is_small(came) else self._among_all(came)

    def _among_all(self, came: Rows) -> tuple[RunResults, RunResults]:
        before, reach = self.levels.flat()
        places, since = pl_.touched(before, reach, came)
        old, _ = self._runs(before, places, since)
        events, reach = pl_.merged(before, reach, came)
        places, since = pl_.touched(events, reach, came)
        new, found = self._runs(events, places, since)
        pl_.set_reach(events, reach, places, found)
        self.levels.replace(events, reach)
        return old, new

    def _near(self, came: Rows) -> tuple[RunResults, RunResults]:
        """The same by what is near the changes."""
        near = self.levels.near(came)
        first, since, _ = near.at_places(near.before)
        old, _ = self._runs(near.before, first, since)
        old.of_groups(near.groups)
        while True:
            first, since, which = near.at_places(near.after)
            new, found = self._runs(near.after, first, since)
            if near.suffices(which, found):
                break
            near = self.levels.near(came, near)
        new.of_groups(near.groups)
        self.levels.add(came, near, which, found)
        return old, new

    def _take_transitions(self, chunk: Chunk) -> tuple[RunResults, RunResults]:
        events, reach = self.levels.flat()
        places, since = pl_.all_places(events)
        old, _ = self._runs(events, places, since)
        self.transitions.take(chunk)
        new, found = self._runs(events, places, since)
        pl_.set_reach(events, reach, places, found)
        self.levels.replace(events, reach)
        return old, new

    def _changes(self, chunk: Chunk) -> Rows:
        """The events that came and went, with the lifetimes that count."""
        shape = self.shape
        needed = (*shape.by, *([shape.order] if shape.order else []))
        rows = chunk.rows
        if needed and any(rows[name].null_count() for name in needed):
            rows = rows.drop_nulls(needed)
            chunk = replace(chunk, rows=rows)
        g, content = self.groups.ids(rows), self.content_index.ids(rows)
        vs, old, new = chunk.vs, chunk.old, chunk.new
        at = vs if shape.order is None else rows[shape.order].cast(pl.Int64).to_numpy()
        gone, come = old > vs, new > vs
        if shape.window is not None:
            old = new = later(vs, shape.window)
        parts = [
            np.column_stack((g[is_], at[is_], vs[is_], end[is_], content[is_], np.full(int(is_.sum()), sign)))
            for is_, end, sign in ((gone, old, -1), (come, new, 1))
        ]
        return pl_.in_order(np.concatenate(parts) if gone.any() else parts[1])

    def _runs(self, rows: Rows, places: Times, since: Times) -> tuple[RunResults, Times]:
        steps, shape = self.steps, self.shape
        given = self.content_index.contents, self.transitions.table, steps.programs, steps.initial
        runs, registers, reach = rn.runs_from(rows, places, since, *given, shape.order is not None, shape.once)
        return RunResults(runs, registers), reach

    # --- output --------------------------------------------------------------------------------------------------

    def _difference(self, old: RunResults | None, new: RunResults | None) -> Chunk:
        if old is None or new is None:
            nothing = np.empty(0, dtype=np.int64)
            return self.order.chunk(nothing, nothing, nothing, pl.DataFrame(schema=self.schema), self.cti)
        lo, hi = new.runs[:, rn.OUT_LO], new.runs[:, rn.OUT_HI]
        if not len(old.runs):
            times = new.runs[:, rn.OUT_COUNT]
            if not self.shape.once and (times > 1).any():
                row = np.repeat(np.arange(len(times)), times)
                new, lo, hi = RunResults(new.runs[row], new.registers[row]), lo[row], hi[row]
            return self.order.chunk(lo, lo, hi, self._payload(new), self.cti)
        both = RunResults(np.concatenate((old.runs, new.runs)), np.concatenate((old.registers, new.registers)))
        count = both.runs[:, rn.OUT_COUNT].copy()
        if self.shape.once:
            count[:] = 1
            both.runs[:, rn.OUT_STATE] = 0
        count[: len(old.runs)] *= -1
        words = both.words()
        order = np.lexsort(words.T[::-1])
        words, count = words[order], count[order]
        kept = cancelled(words, count)
        order, ends = order[kept], words[kept, -1]
        row, was, now, times = changes(words[kept], count[kept]).T
        lo = both.runs[order[row], rn.OUT_LO]
        before, after = np.where(was < 0, lo, ends[was]), np.where(now < 0, lo, ends[now])
        picked = np.repeat(np.arange(len(row)), times)
        chosen = order[row[picked]]
        payload = self._payload(RunResults(both.runs[chosen], both.registers[chosen]))
        return self.order.chunk(lo[picked], before[picked], after[picked], payload, self.cti)

    def _payload(self, found: RunResults) -> pl.DataFrame:
        runs = found.runs
        columns = [pl.Series("begin", runs[:, rn.BEGIN]), pl.Series("end", runs[:, rn.END])]
        if not self.shape.once:
            columns.append(self.transitions.labels(runs[:, rn.OUT_STATE]).alias("state"))
        columns += [register(name, i, found) for i, name in enumerate(self.steps.registers)]
        if not self.shape.by:
            return pl.DataFrame(columns)
        return self.groups.take(runs[:, rn.OUT_GROUP]).hstack(columns)

    # --- state ---------------------------------------------------------------------------------------------------

    @property
    def events(self) -> Rows:
        return self.levels.flat()[0]

    @events.setter
    def events(self, rows: Rows) -> None:
        self.levels = RunLevels(rows)

    @property
    def reach(self) -> Times:
        return self.levels.flat()[1]

    @reach.setter
    def reach(self, times: Times) -> None:
        self.levels.replace(self.events, times)

    def _forget(self, settled: Times, came: int) -> None:
        self.transitions.forget(self.cti)
        if not self.levels.may_pass(came) and self.cti != INF:
            return
        events, reach = self.levels.flat()
        keep = pl_.still_needed(events, settled)
        if 4 * np.count_nonzero(~keep) < len(keep):
            return
        events, reach = events[keep], reach[keep]
        numbers = self.content_index.compact(events[:, pl_.CONTENT])
        if numbers is not None:
            events[:, pl_.CONTENT] = numbers[events[:, pl_.CONTENT]]
            self.transitions.renew()
        numbers = self.groups.compact(events[:, pl_.G])
        if numbers is not None:
            events[:, pl_.G] = numbers[events[:, pl_.G]]
            self.front.renumber(numbers)
        self.levels.replace(events, reach)


def register(name: str, number: int, found: RunResults) -> pl.Series:
    values = pl.Series(name, found.registers[:, number])
    missing = (found.runs[:, rn.OUT_NULLS] >> number) & 1
    return values.set(pl.Series(missing.astype(bool)), None) if missing.any() else values
