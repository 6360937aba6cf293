"""Fronts: how far each group has come.

A CTI is the progress of the whole input. A promise about the columns that make a group means that this group is
ahead. The front of a group is the time before which nothing about it can arrive on any input:

    front[g] = min over the inputs of max(CTI of the input, what the input promised about g)

So pass, purge and prop are what an operator did with its CTI, group by group: results are emitted up to the front of
their group, state behind it is dropped (at a front of INF the whole group), and what the output can promise is the
front, held back by what is not emitted yet.

Contract. The operator numbers its groups with a `RowIndex`. In each `advance` it calls, in this order,

    front.advance(port, chunk)     before or after the rows of the chunk get their numbers
    front.all(), front.of(port)    the fronts: an array by group number, or of length 1 as long as no promise is about
                                   the groups; kernels take both
    front.settle(held)             `held`: where the earliest result of each group starts that waits (INF: none),
                                   as an array by group number or of length 1
    front.passed(cti, work, emitted)   what the output promises now and did not before, in addition to its CTI;
                                   `emitted`: the groups of the rows that are emitted with this chunk

and `front.renumber(numbers)` when the index was compacted. A promise that no group matches passes at once; what is held
back, by an open group or because another input has not promised as much, waits and is tried again (see `waiting`).
Rows emitted ahead of the CTI are always covered by what is promised with them: when a promise about many groups is held
back by one, the others are promised one by one. Without that an operator further on would take them for progress.

As long as no promise is about the groups, all of this is a few scalars.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk
from cedr.columnar.index import RowIndex
from cedr.columnar.promises import BEFORE, NONE, Promises, point_promises
from cedr.columnar.state import ARRAY, PARTS, TRANSIENT, Stateful, each, fields, optional
from cedr.columnar.times import Times
from cedr.contracts import CallOrder
from cedr.operators.base import Operator
from cedr.operators.latency import TOGETHER
from cedr.operators.waiting import Waiting
from cedr.temporal.time import INF, MIN

Mask = np.ndarray
NO_GROUPS = np.empty(0, dtype=np.int64)


class Front(Stateful):
    """`names`: per input, the payload column behind a column of the index, each payload column at most once; columns
    left out have none. `out`: the output columns that show a column of the index. Both default to the same names.
    `needed`: inputs without whose tuples in a group it has no results, so that what such an input promises about a
    group without state holds for the output whatever the others do."""

    state = fields(
        own=each(optional(ARRAY)),
        settled=ARRAY,
        _settled_before=TRANSIENT,
        _new=TRANSIENT,
        _waiting=PARTS,
        _order=TRANSIENT,
    )

    def __init__(
        self,
        operator: Operator,
        index: RowIndex,
        names: Sequence[Mapping[str, str]] | None = None,
        out: Mapping[str, Iterable[str]] | None = None,
        needed: Sequence[int] = (),
    ) -> None:
        same = {name: name for name in index.schema}
        self.operator, self.index = operator, index
        self.names = [dict(n) for n in names] if names is not None else [same] * operator.ports
        self.out = {name: tuple(shown) for name, shown in out.items()} if out else {name: (name,) for name in same}
        self.needed = frozenset(needed)
        self.own: list[Times | None] = [None] * operator.ports
        """By group number what an input promised about the group; None before its first such promise."""
        self.settled = np.array([MIN], dtype=np.int64)
        """Up to where the output of each group is final, by group number once `keyed`."""
        self._settled_before = self.settled
        self._new = [NONE] * operator.ports
        self._waiting = [Waiting() for _ in range(operator.ports)]
        self._order = CallOrder("advance", "settle", "passed")

    @property
    def keyed(self) -> bool:
        """Was anything promised about groups?"""
        return any(own is not None for own in self.own)

    # --- how far groups have come ------------------------------------------------------------------------------------

    def advance(self, port: int, chunk: Chunk) -> None:
        """Take in what the chunk promises."""
        assert self._order.call("advance")
        if not len(chunk.promises):
            return
        new = chunk.promises.renamed({payload: (name,) for name, payload in self.names[port].items()})
        if not len(new):
            return
        if not self.keyed:
            self.settled = np.full(len(self.index), self.settled[0], dtype=np.int64)
        self._new[port] = self._new[port].plus(new)
        if self.own[port] is None:
            self.own[port] = np.empty(0, dtype=np.int64)
        self.own[port] = self._raised(self._grown(port), new)

    def of(self, port: int) -> Times:
        """The front of each group on one input."""
        cti = self.operator.ctis[port]
        if self.own[port] is None:
            return np.array([cti], dtype=np.int64)
        return np.maximum(self._grown(port), cti)

    def all(self) -> Times:
        """The front of each group."""
        fronts = self.of(0)
        for port in range(1, len(self.own)):
            fronts = np.minimum(fronts, self.of(port))
        return fronts

    def ahead(self, front: Times) -> Mask:
        """Which groups have their front from promises about them, not from the CTIs that hold for all.

        Promises about other groups, such as those that a select derives from its condition, change nothing for a group.
        """
        if not self.keyed:
            return TOGETHER
        own = np.full(len(self.index), INF, dtype=np.int64)
        for port, promised in enumerate(self.own):
            own = np.minimum(own, MIN if promised is None else self._grown(port))
        return (front > self.operator.cti) | (own >= front)

    def _grown(self, port: int) -> Times:
        """`own` with the groups that are new."""
        own = self.own[port]
        assert own is not None
        if len(own) < len(self.index):
            fresh = self.index.rows[len(own) :].select(pl.col(name).alias(p) for name, p in self.names[port].items())
            own = self.own[port] = np.concatenate((own, self.operator.promised[port].of(fresh)))
        return own

    def _raised(self, own: Times, new: Promises) -> Times:
        """`own` with new promises: those about one group each by its number, others against all groups."""
        every = tuple(sorted(self.index.schema))
        table = new.points.get(every)
        if table is not None:
            numbers = self.index.ids(table.select(pl.col(n).cast(k) for n, k in self.index.schema.items()), add=False)
            found = numbers >= 0
            own = own.copy()
            np.maximum.at(own, numbers[found], table[BEFORE].to_numpy()[found])
            new = Promises({n: t for n, t in new.points.items() if n != every}, new.steps, new.others, new.kinds)
        return np.maximum(own, new.of(self.index.rows)) if len(new) and len(own) else own

    # --- what is final -----------------------------------------------------------------------------------------------

    def promised(self) -> Times:
        """Up to where the output of each group was final before this chunk."""
        return np.maximum(self._settled(), self.operator.cti_out)

    def _settled(self) -> Times:
        if self.keyed and len(self.settled) < len(self.index):
            fresh = np.full(len(self.index) - len(self.settled), MIN, dtype=np.int64)
            self.settled = np.concatenate((self.settled, fresh))
        return self.settled

    def settle(self, held: Times, front: Times | None = None) -> Times:
        """Up to where the output of each group is final now; INF: the group is done.

        `front`: the fronts, if the operator knows groups that are further than what was promised about them.
        """
        assert self._order.call("settle")
        assert len(held) in (1, len(self.index)), "settle: `held` is one time for all groups, or one for each group"
        before = self._settled_before = self._settled()
        self.settled = np.maximum(before, np.minimum(self.all() if front is None else front, held))
        return self.settled

    def passed(self, cti: int, work: int, emitted: Times = NO_GROUPS) -> Promises:
        """What the output promises now and did not before, in addition to its `cti`.

        `work`: the rows of the chunk; `emitted`: the groups of rows that are emitted with it.
        """
        assert self._order.call("passed")
        passed, new = NONE, self._new
        self._new = [NONE] * len(new)
        for port, waiting in enumerate(self._waiting):
            passed = passed.plus(waiting.passed(new[port], partial(self._promises_from, port), cti, work))
        if self.keyed and len(emitted):
            passed = passed.plus(self._one_by_one(np.unique(emitted), passed, cti))
        return passed.renamed(self.out) if len(passed) else passed

    def _one_by_one(self, emitted: Times, passed: Promises, cti: int) -> Promises:
        """Promises about groups that got further than other promises cover."""
        further = emitted[self.settled[emitted] > np.maximum(self._settled_before[emitted], cti)]
        keys = self.index.take(further)
        missing = self.settled[further] > passed.of(keys)
        return point_promises(keys.filter(missing), self.settled[further[missing]]) if missing.any() else NONE

    def _promises_from(self, port: int, promises: Promises) -> Promises:
        """What the output can promise of what one input promises."""
        if port in self.needed:
            return promises.held_back(*self._open(self.of(port)))
        return self._by_all(port, promises).held_back(*self._open(self.all()))

    def _by_all(self, port: int, promises: Promises) -> Promises:
        """What all inputs promise, of what one promises."""
        for other, names in enumerate(self.names):
            if other != port and len(promises):
                theirs = promises.renamed({name: (payload,) for name, payload in names.items()})
                met = self.operator.promised[other].limit(theirs, self.operator.ctis[other])
                promises = met.renamed({payload: (name,) for name, payload in names.items()})
        return promises

    def _open(self, front: Times) -> tuple[pl.DataFrame, Times]:
        """The groups whose output is not final up to a front, and up to where it is."""
        late = np.flatnonzero(self.settled < front)
        return self.index.take(late), self.settled[late]

    # --- state -------------------------------------------------------------------------------------------------------

    def renumber(self, numbers: Times) -> None:
        """The index was compacted: the new number of each group, -1 for those that are gone."""
        assert self._order.last == "passed", "renumber: compact the index after `passed`"
        self.own = [own if own is None else own[numbers[: len(own)] >= 0] for own in self.own]
        if self.keyed:
            self.settled = self.settled[numbers[: len(self.settled)] >= 0]


def earliest(held: Times) -> int:
    """The earliest of all groups."""
    return int(held.min(initial=INF))


def by_group(times: Times, g: Times) -> Times:
    """The time of each group in a list; one for all stays one."""
    return times[g] if len(times) > 1 else times


def still_matters(g: Times, end: Times, settled: Times) -> Mask:
    """Whether what ends then can still change, when its group is settled so far; at INF nothing can."""
    limit = by_group(settled, g)
    return (end >= limit) & (limit != INF)
