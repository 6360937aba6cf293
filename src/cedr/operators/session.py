"""Session windows: tuples of a group whose starts follow each other by less than a timeout live together.

Only starts matter. As long as a session can get a member whose lifetime begins at the session's first start, the output
cannot promise more about its group than that start; a session that no start can reach any more is forgotten.

While chunks are small, members are kept in blocks, with an index of the sessions: a chunk reads only the sessions that
its starts can reach. What was emitted follows from the members, so blocks do not keep it, and snapshots do not have it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from cedr.columnar.blocks import Matrix, SortedBlocks
from cedr.columnar.chunk import Chunk, Times, assemble
from cedr.columnar.compacting import compact
from cedr.columnar.index import RowIndex
from cedr.columnar.state import BLOCKS, PART, REBUILT_PART, TRANSIENT, State, columns, counted, fields
from cedr.columnar.times import later
from cedr.kernels.difference import net_change
from cedr.kernels.sessions import near_sessions, one_row_each, over_and_open, sessions
from cedr.operators.base import Operator
from cedr.operators.front import Front, by_group, earliest
from cedr.operators.keyed import by_payload, first_of_each
from cedr.operators.lap import Lap
from cedr.operators.locality import Locality
from cedr.operators.synopsis import Synopsis
from cedr.operators.tuple_store import KEY, VALUE, Mask, TupleBlocks, TupleStore, sorted_rows
from cedr.operators.two_layouts import TwoLayouts, Views
from cedr.operators.values import Words
from cedr.temporal.time import INF, MIN, as_duration


class SessionOperator(TwoLayouts, Operator):
    state = fields(
        groups=PART,
        payloads=PART,
        members=counted(columns(TupleStore)),
        emitted=REBUILT_PART,
        front=PART,
        blocks=counted(BLOCKS),
        _locality=TRANSIENT,
    )
    fields_in_blocks = ("members",)

    def __init__(self, schema: Mapping[str, pl.DataType], timeout: int, by: Sequence[str] = ()) -> None:
        super().__init__()
        self.schema, self.timeout = dict(schema), as_duration(timeout, "session timeout")
        self.groups = RowIndex({name: schema[name] for name in by})
        self.front = Front(self, self.groups)
        self.payloads = RowIndex(self.schema)
        self.members = TupleStore.empty()
        self.emitted = Synopsis(0)
        self.blocks: SessionBlocks | None = None
        """The members, if they are in blocks; `members` and `emitted` are empty then."""
        self._locality = Locality(touched_cost=30)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        self._choose_layout(chunk)
        if self.blocks is not None:
            return self._advance_blocks(self.blocks, port, chunk)
        self.members = self.members.merge(self._changes(chunk))
        self.front.advance(port, chunk)
        first, end, answer = self._answer(self.members)
        changed, _, at, before, after = self.emitted.update(*answer)
        g = self.members.key
        front = self.front.all()
        can_change = end > by_group(front, g)
        held = first_of_each(g[can_change], first[can_change], front)
        cti = min(self.cti, earliest(held))
        self.front.settle(held, front)
        out = assemble(at, before, after, self.payloads.take(changed), cti)
        out = replace(out, promises=self.front.passed(cti, len(chunk), g))
        self._forget(can_change, front)
        return out

    def _changes(self, chunk: Chunk) -> TupleStore:
        """The members that come and go, sorted."""
        come, gone = chunk.old == chunk.vs, chunk.new == chunk.vs
        starts = come | gone
        rows = chunk.rows if starts.all() else chunk.rows.filter(pl.Series(starts))
        g, number = self.groups.ids(rows), self.payloads.ids(rows)
        vs, copies = chunk.vs[starts], np.where(come[starts], 1, -1)
        order = np.lexsort((number, vs, g))
        ends = np.zeros(len(order), dtype=np.int64)
        return TupleStore(g[order], vs[order], ends, number[order], copies[order])

    def _answer(self, members: TupleStore) -> tuple[Times, Times, tuple[Times, Times, Times, Words]]:
        """Start and end of the session of each member; and the result, as a `Synopsis` has it."""
        g, vs, _, number, copies = members
        first, last = sessions(g, vs, self.timeout)
        end = later(last, self.timeout)
        order = np.lexsort((end, first, number))
        order = np.repeat(order, copies[order])
        return first, end, (number[order], first[order], end[order], np.empty((len(order), 0), dtype=np.int64))

    def _forget(self, can_change: Mask, front: Times) -> None:
        after = np.where(front < INF, np.minimum(front, INF - 1) + 1, INF)
        self.emitted.forget(by_payload(after, self.members, len(self.payloads)))
        self.members = self.members.where(can_change)
        self._forget_rows()

    def _forget_rows(self) -> None:
        numbers = self.payloads.compact(np.concatenate((self.members.value, self.emitted.g)))
        if numbers is not None:
            self.members = self.members.renumber_values(numbers)
            self.emitted.g = numbers[self.emitted.g]
        numbers = self.groups.compact(self.members.key)
        if numbers is not None:
            self.members = self.members.renumber_keys(numbers)
            self.front.renumber(numbers)

    # --- in blocks ---------------------------------------------------------------------------------------------------

    def _advance_blocks(self, blocks: "SessionBlocks", port: int, chunk: Chunk) -> Chunk:
        self.front.advance(port, chunk)
        changes = self._changes(chunk)
        keys, old = blocks.near(changes.key, changes.vs)
        new = old.merge(changes._replace(key=np.searchsorted(keys, changes.key)))
        (first, _, answer), (new_first, _, new_answer) = self._answer(old), self._answer(new)
        changed, _, at, before, after = net_change(*answer, *new_answer, np.array([INF]))
        blocks.change(keys, changes, (old, first), (new, new_first))
        self._locality.touch(old.rows)
        held = np.array([blocks.forget(self.cti)])
        cti = min(self.cti, earliest(held))
        self.front.settle(held)
        out = assemble(at, before, after, self.payloads.take(changed), cti)
        promises = self.front.passed(cti, len(chunk))
        self._compact(blocks)
        return replace(out, promises=promises)

    def _compact(self, blocks: "SessionBlocks") -> None:
        """Drop groups and payloads that are not used, when many members have come since the last time."""
        if blocks.lap.begins(blocks.rows):
            blocks.lap.under_way = False
            compact(self.payloads, (blocks.members.blocks, VALUE))
            numbers = blocks.compact(self.groups)
            if numbers is not None:
                self.front.renumber(numbers)

    def _choose_layout(self, chunk: Chunk) -> None:
        """Arrays or blocks, before a chunk. Blocks need one front for all groups that is not the end."""
        held = self.members.rows if self.blocks is None else self.blocks.rows
        in_blocks = self._locality.prefers_blocks(held, len(chunk), self.blocks is not None)
        in_blocks &= not self.front.keyed and not len(chunk.promises) and self.cti < INF
        if in_blocks == (self.blocks is not None):
            return
        if self.blocks is not None:
            self.fill_arrays()
            self._rebuild_emitted()
            self.blocks = None
            self._forget_rows()
            self._locality.changed()
        else:
            self._to_blocks()

    # --- state -------------------------------------------------------------------------------------------------------

    def restored(self) -> None:
        self.blocks = None

    def restore(self, state: State) -> None:
        super().restore(state)
        if self.blocks is None:
            self._rebuild_emitted()

    def _rebuild_emitted(self) -> None:
        _, _, (self.emitted.g, self.emitted.start, self.emitted.end, self.emitted.words) = self._answer(self.members)

    def block_views(self) -> Views | None:
        return None if self.blocks is None else {"members": self.blocks.members.view()}

    def fill_arrays(self) -> None:
        """Without what may be forgotten."""
        assert self.blocks is not None
        members = self.blocks.members.flat()
        _, end, _ = self._answer(members)
        self.members = members.where(end > self.blocks.front)

    def clear_arrays(self) -> None:
        self.members, self.emitted = TupleStore.empty(), Synopsis(0)

    def move_to_blocks(self) -> None:
        self._to_blocks().front = self.cti

    def _to_blocks(self) -> "SessionBlocks":
        self.blocks = SessionBlocks(self.members, self.timeout)
        self.clear_arrays()
        self._locality.changed()
        return self.blocks


class SessionBlocks:
    """Members in blocks; and the sessions `(group, first start, last start)`, by group and by first start."""

    def __init__(self, members: TupleStore, timeout: int) -> None:
        self.timeout, self.front = timeout, MIN
        self.members = TupleBlocks(members)
        self.lap = Lap()
        self.sessions, self.by_start = SortedBlocks(4, 3, 3), SortedBlocks(4, 3, 3)
        every = one_row_each(members.key, *sessions(members.key, members.vs, timeout))
        self._add_sessions(np.column_stack((every, np.ones(len(every), dtype=np.int64))))

    @property
    def rows(self) -> int:
        return self.members.rows

    @property
    def nbytes(self) -> int:
        return self.members.nbytes + self.sessions.nbytes + self.by_start.nbytes

    def near(self, g: Times, vs: Times) -> tuple[Times, TupleStore]:
        """The members of all sessions that starts can reach, or that reach them; groups are numbered by their place in
        the first result."""
        found = near_sessions(g, vs, self.timeout, *self.sessions.arrays)
        keys = np.unique(g)
        return keys, self._members(found, keys)

    def _members(self, found: Matrix, keys: Times) -> TupleStore:
        group, first, last = found[:, 0], found[:, 1], found[:, 2]
        _, rows = self.members.blocks.between([group, first], [group, last + 1])
        columns = rows.T.copy()
        return TupleStore(np.searchsorted(keys, columns[0]), *columns[1:])

    def change(
        self, keys: Times, changes: TupleStore, old: tuple[TupleStore, Times], new: tuple[TupleStore, Times]
    ) -> None:
        """Members come and go, which turns old sessions, given as members with the first start of each, into others."""
        self.members.add(changes)
        self.lap.add(changes.rows)
        rows = []
        for (members, first), sign in ((old, -1), (new, 1)):
            _, last = sessions(members.key, members.vs, self.timeout)
            found = one_row_each(members.key, first, last)
            rows.append(np.column_stack((keys[found[:, 0]], found[:, 1:], np.full(len(found), sign))))
        self._add_sessions(sorted_rows(np.concatenate(rows), 3))

    def _add_sessions(self, rows: Matrix) -> None:
        self.sessions.add(rows)
        self.by_start.add(sorted_rows(rows[:, [1, 0, 2, 3]], 3))

    def forget(self, front: int) -> int:
        """Drop sessions that are over, up to the first that is not; returns its first start."""
        self.front = front
        over, held = over_and_open(*self.by_start.arrays, self.timeout, front)
        if over:
            rows = self.by_start.head(over)
            rows[:, 3] = -1
            gone = sorted_rows(rows[:, [1, 0, 2, 3]], 3)
            keys = np.unique(gone[:, 0])
            members = self._members(gone, keys)
            self.members.add(members._replace(key=keys[members.key]).negated())
            self.sessions.add(gone)
            self.by_start.add(rows)
        return int(held)

    def compact(self, groups: RowIndex) -> Times | None:
        """Drop groups without members; returns the new number of each."""
        numbers = compact(groups, (self.members.blocks, KEY), (self.sessions, 0))
        if numbers is not None:
            self.by_start.renumber(1, numbers)
        return numbers
