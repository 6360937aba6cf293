"""Align: hold elements back, so that what depends on them gets fewer retractions.

Align changes nothing in the canonical history. It sets the blocking side of consistency (technical report, 4.5): while
an element is held, adjusts of it are merged into it, and a held insert that is removed disappears.

    flavour    an insert leaves when     the output is   at CTI t the output has CTI
    ordered    vs < t                    ordered         t
    perfect    ve < t, in order of vs    perfect         min(t, smallest vs held)

Nothing is settled at t itself: an adjust with sync time t, such as the removal of a tuple that starts at t, may follow
CTI t. Perfect output is ordered too, so an insert waits for all that start before it: one event without end holds back
everything after it until the CTI of infinity. That is what perfect means; use ordered where events may live for ever.

`block` is how long an element may be held. An element whose start is not later than the *output time* leaves without
a CTI, and so do its adjusts from then on. The output time never goes back; it is

    without clock   the highest start seen, less `block`
    with clock      the highest start that had been seen `block` ago by the clock

so no element stays longer than `block`, and of late ones less. block=0 holds nothing, block=INF waits for CTIs alone.

Promises about the sets of columns in `by` settle rows too: for a row that one is about, `t` above is the time promised.
Each part then leaves in an order of its own, for the perfect flavour within rows that agree in such a set of columns.
The output promises what the input does, held back by what is held; what leaves ahead of the CTI is always covered.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import polars as pl

from cedr.columnar.chunk import NEW, OLD, TIMES, VS, Chunk, Times
from cedr.columnar.index import RowIndex
from cedr.columnar.promises import NONE, Names, PromiseIndex, Promises, point_promises
from cedr.columnar.state import FRAME, LIST, NUMBER, PART, PARTS, counted, fields
from cedr.kernels.chains import merge, nodes
from cedr.operators.base import Operator
from cedr.operators.feedback import PassesFeedback
from cedr.operators.waiting import Waiting
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, MIN, as_time

Flavour = Literal["ordered", "perfect"]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

MANY_PIECES = 64
"""Maximum number of pieces of the frame of held rows before they are merged; every access pays for each piece."""


class AlignOperator(PassesFeedback, Operator):
    """Holds elements back until a CTI or a promise about columns in `by` settles them, or `block` has passed.

    `clock` returns chronons and never goes back; with it `block` is system time, and `tick` releases what has waited
    long enough when no input comes. Without it `block` is application time.
    """

    state = fields(
        _held=counted(FRAME),
        _settling=PARTS,
        _waiting=PART,
        _highest=NUMBER,
        _output_time=NUMBER,
        _seen=LIST,
    )

    def __init__(
        self,
        schema: Mapping[str, pl.DataType],
        block: int = INF,
        flavour: Flavour = "ordered",
        clock: Callable[[], int] | None = None,
        by: Iterable[Names] = (),
    ) -> None:
        super().__init__()
        if as_time(block, "block") < 0:
            raise QueryError(f"block is {block}; it is a length of time, from 0 to INF")
        if flavour not in ("ordered", "perfect"):
            raise QueryError(f"flavour is {flavour!r}; it is 'ordered' or 'perfect'")
        self.schema, self.block, self.flavour, self.clock = dict(schema), block, flavour, clock
        self.same_times = flavour == "ordered" and block in (0, INF)
        """Rows leave as CTIs settle them, each for itself. Else the output time, or the CTI, depends on what came."""
        self.by = {tuple(sorted(names)): f"_until_{number}" for number, names in enumerate(by)}
        """By set of columns, the column of held rows with the time promised about them."""
        self._columns = [*TIMES, *self.schema]
        untils = dict.fromkeys(self.by.values(), pl.Int64())
        self._held = pl.DataFrame(schema={**dict.fromkeys(TIMES, pl.Int64()), **self.schema, **untils})
        self._settling = {names: PromiseIndex() for names in self.by}
        """Of what was promised, what is about columns in `by`."""
        self._waiting = Waiting()
        self._highest = MIN
        self._output_time = MIN
        self._seen: list[tuple[int, int]] = []
        """With a clock: when the highest start rose, and to what; only what the output time has not reached."""

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        if self.block == 0:
            return Chunk(chunk.rows.select(self._columns), self.cti, promises=chunk.promises)
        self._move_output_time(int(chunk.vs.max()) if len(chunk) else MIN)
        if len(chunk.promises):
            self._note_settling(chunk.promises)
        self._hold(chunk)
        return self._release(chunk.promises, len(chunk))

    def tick(self) -> Chunk:
        """What leaves because time has passed."""
        self._move_output_time()
        out = self._release(NONE, 0)
        if out.cti <= self.cti_out:
            out = replace(out, cti=MIN)  # nothing new is promised
        self.cti_out = max(self.cti_out, out.cti)
        self.metrics.rows_out += len(out)
        self.metrics.adjusts_out += len(out) - int(np.count_nonzero(out.is_insert))
        self.metrics.cti_out = self.cti_out
        self.metrics.state_rows, self.metrics.state_bytes = self.state_size()
        return out

    # --- output time ---------------------------------------------------------------------------------------------

    def note_highest(self, highest: int) -> None:
        """Take into account a start that passed before this operator was there."""
        self._move_output_time(highest)

    def _move_output_time(self, highest: int = MIN) -> None:
        """Take in the highest start of a chunk and move the output time on."""
        if self.block == INF:
            return
        if not self.clock:
            self._highest = max(self._highest, highest)
            self._output_time = max(MIN, self._highest - self.block)
            return
        now = self.clock()
        if highest > self._highest:
            self._highest = highest
            self._seen.append((now, highest))
        while self._seen and self._seen[0][0] + self.block <= now:
            self._output_time = self._seen.pop(0)[1]

    # --- holding -------------------------------------------------------------------------------------------------

    def _note_settling(self, promises: Promises) -> None:
        """Note how far held rows are settled now."""
        for names, column in self.by.items():
            settling = promises_about(promises, names)
            self._settling[names].add(settling, self.cti)
            if self._held.height and len(settling):
                until = np.maximum(self._held[column].to_numpy(), settling.of(self._held))
                self._held = self._held.with_columns(pl.Series(column, until))

    def _hold(self, chunk: Chunk) -> None:
        if not len(chunk):
            return
        first = self._held.height
        is_adjust = chunk.old != chunk.vs
        rows = chunk.rows.select(self._columns)
        if self.by:
            untils = {column: self._settling[names].of(rows) for names, column in self.by.items()}
            rows = rows.with_columns(pl.Series(column, until) for column, until in untils.items())
        self._held = pl.concat([self._held, rows]) if first else rows
        if is_adjust.any():
            self._merge(chunk.vs[is_adjust])
        if self._held.n_chunks() > MANY_PIECES:
            self._held = self._held.rechunk()

    def _merge(self, adjusted: Times) -> None:
        """Work adjusts into what is held; only rows with the start of an adjust can be concerned."""
        concerned = np.flatnonzero(self._held[VS].is_in(pl.Series(np.unique(adjusted)).implode()).to_numpy())
        rows = self._held[concerned]
        vs, old, new = (rows[name].to_numpy() for name in TIMES)
        ids = RowIndex(self.schema).ids(rows)
        last, kept = merge(*nodes(vs, ids, old, new))
        ends = self._held[NEW].to_numpy().copy()
        ends[concerned] = new[last]
        self._held = self._held.with_columns(pl.Series(NEW, ends))
        if not kept.all():
            stays = np.ones(len(ends), dtype=np.bool_)
            stays[concerned] = kept
            self._held = self._held.filter(pl.Series(stays))

    # --- releasing -----------------------------------------------------------------------------------------------

    def _release(self, promises: Promises, work: int) -> Chunk:
        vs, old, new = (self._held[name].to_numpy() for name in TIMES)
        sync = np.minimum(old, new)
        leaves, one_by_one = self._settled_by_promises(vs, new, sync)
        leaves |= self._settled(vs, new, sync, leaves)
        if self._output_time != MIN:
            leaves |= vs <= self._output_time
        out = self._held.filter(pl.Series(leaves)) if leaves.any() else self._held.clear()
        if len(out):
            out = in_order(out, sync[leaves])
            self._held = self._held.filter(pl.Series(~leaves))
        cti = self._promise()
        passed = self._waiting.passed(promises, self._not_about_held, cti, work)
        if len(one_by_one):
            passed = passed.plus(one_by_one.after(cti).beyond(passed))
        return Chunk(out.select(self._columns), cti, promises=passed)

    def _settled(self, vs: Times, end: Times, sync: Times, leaves: Mask) -> Mask:
        """What no later element can change before the CTI, and nothing later has to precede but what leaves now."""
        t = self.cti
        if self.flavour == "ordered" or t in (INF, MIN):
            return sync < t
        ended = end < t
        still_open = vs[~ended & ~leaves & (vs > self._output_time)]
        return ended & (vs <= still_open.min(initial=INF))

    def _settled_by_promises(self, vs: Times, end: Times, sync: Times) -> tuple[Mask, Promises]:
        """What nothing can change before the time promised about it, and what to promise of it one by one."""
        leaves, one_by_one = np.zeros(len(vs), dtype=np.bool_), NONE
        if not any(self._settling.values()) or not len(vs):
            return leaves, one_by_one
        for names, column in self.by.items():
            until = self._held[column].to_numpy()
            if self.flavour == "ordered":
                leaves |= sync < until
                continue
            ended = (end < until) | (until == INF)
            still_open = pl.Series("_open", np.where(~ended & (vs > self._output_time), vs, INF))
            first_open = self._held.with_columns(still_open).select(pl.col("_open").min().over(names))["_open"]
            sure = np.minimum(until, first_open.to_numpy())
            leaves_now = ended & (vs < sure)
            if leaves_now.any():
                part = self._held.select(names).filter(leaves_now)
                one_by_one = one_by_one.plus(point_promises(part, sure[leaves_now]))
                leaves |= leaves_now
        return leaves, one_by_one

    def _not_about_held(self, promises: Promises) -> Promises:
        """Promises, as far as no row that they are about is held."""
        sync = np.minimum(self._held[OLD].to_numpy(), self._held[NEW].to_numpy())
        return promises.held_back(self._held.select(list(self.schema)), sync)

    def _promise(self) -> int:
        if self.flavour == "ordered" or not self._held.height:
            return self.cti
        return max(self.cti_out, min(self.cti, int(self._held[VS].to_numpy().min())))


def promises_about(promises: Promises, names: Names) -> Promises:
    """Only promises about this very set of attributes."""
    return Promises(
        {names: promises.points[names]} if names in promises.points else {},
        {names[0]: promises.steps[names[0]]} if len(names) == 1 and names[0] in promises.steps else {},
        tuple(p for p in promises.others if tuple(sorted(p.attributes)) == names),
        promises.kinds,
    )


def in_order(rows: pl.DataFrame, sync: Times) -> pl.DataFrame:
    """The rows by sync time; those with the same one keep their order."""
    if (sync[1:] >= sync[:-1]).all():
        return rows
    return rows[np.argsort(sync, kind="stable")]
