"""Temporal equijoin: pairs of tuples with equal keys while both live.

Symmetric: a chunk of one side meets the stored tuples of the other, then is stored itself. Because a row states how an
end changes, the change of each overlap follows from the row and the other tuple alone; inserts, retractions and growing
ends take the same path. A tuple is forgotten once the other side's front for its key has reached its end. A missing key
matches nothing.

What both sides promise about key columns the output promises, too; of keys without tuples what one side promises is
enough. Promises about other columns of a side do not pass: the other side may still bring partners for the tuples that
are there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from cedr.columnar.blocks import SortedBlocks
from cedr.columnar.chunk import Chunk, Times, assemble
from cedr.columnar.compacting import compact
from cedr.columnar.index import RowIndex
from cedr.columnar.mapped import MEMORY
from cedr.columnar.picked import picked
from cedr.columnar.state import (
    BLOCKS,
    DERIVED,
    NUMBER,
    PART,
    PARTS,
    TRANSIENT,
    Stateful,
    columns,
    counted,
    fields,
)
from cedr.kernels.overlap import (
    keys_of_partners,
    longest,
    overlaps,
    overlaps_in_blocks,
    raise_longest,
    raise_longest_in_blocks,
)
from cedr.operators.base import Operator
from cedr.operators.front import Front, by_group
from cedr.operators.lap import RowLap
from cedr.operators.locality import Locality
from cedr.operators.tuple_store import END, KEY, VALUE, Mask, TupleBlocks, TupleStore
from cedr.operators.two_layouts import TwoLayouts, Views
from cedr.temporal.time import INF, MIN

Schema = Mapping[str, pl.DataType]
NOTHING_HELD = np.array([INF])
"""Every result is emitted at once."""


class JoinSide(TwoLayouts):
    """The stored tuples of one input: sorted by key and start, payloads by number; in blocks while chunks are small."""

    state = fields(
        payloads=PART,
        tuples=counted(columns(TupleStore)),
        _starts=DERIVED,
        _bound=NUMBER,
        blocks=counted(BLOCKS),
        _locality=TRANSIENT,
    )
    fields_in_blocks = ("tuples",)

    def __init__(self, schema: Schema) -> None:
        self.payloads = RowIndex(dict(schema))
        self.tuples = TupleStore.empty()
        self._starts: tuple[Times, Times] | None = None
        self._bound = MIN
        """What was forgotten last, when it was one time for all keys; blocks may have it still."""
        self.blocks: JoinBlocks | None = None
        """The tuples, if they are in blocks; `tuples` is empty then."""
        self._locality = Locality(touched_cost=100)

    def starts(self, keys: int) -> tuple[Times, Times]:
        """Where the tuples of each key begin, and the longest lifetime of each; of keys that have any."""
        if self._starts is None:
            self._starts = longest(self.tuples.key, self.tuples.vs, self.tuples.ve, keys)
        return self._starts

    def restored(self) -> None:
        self._starts = self.blocks = None

    def block_views(self) -> Views | None:
        return None if self.blocks is None else {"tuples": self.blocks.tuples.view(self._bound)}

    def fill_arrays(self) -> None:
        assert self.blocks is not None
        self.tuples = self._in_blocks(self.blocks)

    def clear_arrays(self) -> None:
        self.hold(TupleStore.empty())

    def move_to_blocks(self) -> None:
        self._to_blocks(int(self.tuples.key.max(initial=-1)) + 1)

    def hold(self, tuples: TupleStore) -> None:
        if tuples is not self.tuples:
            self.tuples, self._starts = tuples, None

    def overlaps(self, g: Times, chunk: Chunk, keys: int) -> tuple[Times, Times, Times, Times, Times]:
        """Row, payload number of the tuple, start, end before and end after of the overlaps that change."""
        if self.blocks is not None:
            return self.blocks.overlaps(g, chunk)
        _, tvs, tve, number, copies = self.tuples
        found = overlaps(g, chunk.vs, chunk.old, chunk.new, *self.starts(keys), tvs, tve, copies)
        row, match, start, before, after = found
        return row, number[match], start, before, after

    def store(self, chunk: Chunk, g: Times, bounds: Times) -> None:
        """Work a chunk in; tuples that end by the bound of their key are not needed and were dropped before."""
        matchable = g >= 0
        old, new = chunk.old, chunk.new
        kept = matchable & (np.maximum(old, new) > by_group(bounds, g))
        rows = chunk.rows if kept.all() else chunk.rows.filter(pl.Series(kept))
        numbers = self.payloads.ids(rows)
        vs, old, new, g = chunk.vs[kept], old[kept], new[kept], g[kept]
        bound = by_group(bounds, g)
        # What ends by the bound is not stored, so it is neither taken away nor brought.
        old, new = np.where(old > bound, old, vs), np.where(new > bound, new, vs)
        if len(g):
            changes = TupleStore.changes(g, vs, old, new, numbers)
            if self.blocks is not None:
                self.blocks.add(changes)
            else:
                self.hold(self.tuples.merge(changes))

    def forget(self, bounds: Times) -> None:
        """Drop what ends by the bound of its key; from blocks a part of it at a time."""
        if self.blocks is None and len(bounds) == 1 and bounds[0] == self._bound:
            return  # what ends by it is not stored any more
        self._bound = int(bounds[0]) if len(bounds) == 1 else MIN
        if self.blocks is not None and self._bound < INF:
            if self.blocks.forget(self._bound):
                compact(self.payloads, (self.blocks.tuples.blocks, VALUE))
            return
        self.as_arrays()
        keep = self.tuples.ve > by_group(bounds, self.tuples.key)
        if not keep.all():
            self.hold(self.tuples.take(keep))
            self._forget_payloads()

    def _forget_payloads(self) -> None:
        numbers = self.payloads.compact(self.tuples.value)
        if numbers is not None:
            self.hold(self.tuples.renumber_values(numbers))

    def mark_keys(self, used: Mask) -> None:
        """Mark the keys that are stored."""
        if self.blocks is not None:
            self.blocks.tuples.blocks.mark(KEY, used)
        used[self.tuples.key] = True

    def renumber_keys(self, numbers: Times) -> None:
        if self.blocks is not None:
            self.blocks.renumber_keys(numbers)
        else:
            self.hold(self.tuples.renumber_keys(numbers))

    # --- the layout --------------------------------------------------------------------------------------------------

    def choose_layout(self, arrived: int, keys: int, one_front: bool) -> None:
        """Arrays or blocks, before a chunk with this number of rows. Blocks need one front for all keys."""
        held = self.tuples.rows if self.blocks is None else self.blocks.rows
        in_blocks = self._locality.prefers_blocks(held, arrived, self.blocks is not None) and one_front
        if not in_blocks:
            self.as_arrays()
        elif self.blocks is None:
            self._to_blocks(keys)

    def _to_blocks(self, keys: int) -> None:
        self.blocks = JoinBlocks(self.tuples, keys)
        self._locality.changed()
        self.clear_arrays()

    def as_arrays(self) -> None:
        """Leave the blocks, without what may be forgotten."""
        if self.blocks is not None:
            blocks, self.blocks = self.blocks, None
            self.hold(self._in_blocks(blocks))
            self._forget_payloads()
            self._locality.changed()

    def _in_blocks(self, blocks: "JoinBlocks") -> TupleStore:
        tuples = blocks.tuples.flat()
        return tuples.where(tuples.ve > self._bound)


class JoinBlocks:
    """Tuples in blocks, and the longest lifetime of each key."""

    def __init__(self, tuples: TupleStore, keys: int) -> None:
        self.tuples = TupleBlocks(tuples)
        _, self.longest = longest(tuples.key, tuples.vs, tuples.ve, keys)
        self.lap = RowLap(4)
        self._longest_left = self.longest[:0]
        """The longest lifetimes of what this lap has seen and has come since: those of all when it is over."""

    @property
    def rows(self) -> int:
        return self.tuples.rows

    @property
    def nbytes(self) -> int:
        return int(self.tuples.nbytes + self.longest.nbytes)

    def add(self, changes: TupleStore) -> None:
        self.tuples.add(changes)
        self.lap.add(changes.rows)
        needed = int(changes.key[-1]) + 1 if changes.rows else 0
        self.longest = with_room(self.longest, needed)
        raise_longest(self.longest, changes.key, changes.vs, changes.ve)
        if self.lap.under_way:
            self._longest_left = with_room(self._longest_left, needed)
            raise_longest(self._longest_left, changes.key, changes.vs, changes.ve)

    def overlaps(self, g: Times, chunk: Chunk) -> tuple[Times, Times, Times, Times, Times]:
        rows = (g, chunk.vs, chunk.old, chunk.new)
        arrays = self.tuples.blocks.arrays
        if self.tuples.blocks.in_file:
            which, lows = keys_of_partners(g, chunk.vs, self.longest)
            highs = np.column_stack((g, np.maximum(chunk.old, chunk.new)))[which]
            arrays = self.tuples.blocks.arrays_between(lows, highs)
        found: tuple[Times, Times, Times, Times, Times]
        found = overlaps_in_blocks(*rows, self.longest, *arrays)
        return found

    def forget(self, bound: int) -> bool:
        """Look at some tuples, and drop those that end by a time; whether a lap is over."""
        blocks, lap = self.tuples.blocks, self.lap
        began = lap.under_way
        if not lap.begins(blocks.rows):
            return False
        if not began:
            self._longest_left = MEMORY.zeros(len(self.longest), np.int64)
        count = lap.step()
        raise_longest_in_blocks(*blocks.arrays_from(lap.key, count), lap.key, count, bound, self._longest_left)
        blocks.remove(lap.ended(blocks, count, END, bound))
        if not lap.under_way:
            self.longest = self._longest_left
        return not lap.under_way

    def renumber_keys(self, numbers: Times) -> None:
        """The keys have new numbers, in the same order."""
        self.tuples.blocks.renumber(KEY, numbers)
        self.lap.renumber_groups(numbers)
        kept = np.flatnonzero(numbers >= 0)
        self.longest, self._longest_left = (of[kept[kept < len(of)]] for of in (self.longest, self._longest_left))


def with_room(longest: Times, keys: int) -> Times:
    """The longest lifetimes with room for this number of keys."""
    known = len(longest)
    if keys > known:
        longest = MEMORY.grown(longest, known + keys)
        longest[known:] = 0
    return longest


class JoinKeys(Stateful):
    """Numbers the join keys of both sides alike."""

    state = fields(index=PART, seen=NUMBER)

    def __init__(self, schemas: Sequence[Schema], names: Sequence[Sequence[str]]) -> None:
        self.names = [list(n) for n in names]
        self.index = RowIndex({f"key{i}": schemas[0][name] for i, name in enumerate(self.names[0])})
        self.seen = 0

    def numbers(self, port: int, rows: pl.DataFrame, *, missing: bool = False) -> Times:
        """The number of each row's key; -1 where a part of it is missing, unless `missing` keys are requested."""
        if not self.index.schema:
            return self.index.ids(rows)
        keys = pl.DataFrame(
            [
                rows.get_column(name).cast(kind).alias(key)
                for name, (key, kind) in zip(self.names[port], self.index.schema.items(), strict=True)
            ]
        )
        g = self.index.ids(keys)
        if not missing and any(column.null_count() for column in keys):
            g = np.where(keys.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy(), -1, g)
        return g

    def front(self, operator: Operator, needed: Sequence[int]) -> Front:
        """How far each key has come; the output shows the keys by their names on port 0.

        `needed`: the ports without whose tuples a key has no results.
        """
        names = [dict(zip(self.index.schema, columns, strict=True)) for columns in self.names]
        out = {key: (name,) for key, name in names[0].items()}
        return Front(operator, self.index, [each_once(n) for n in names], out, needed)

    def may_compact(self) -> bool:
        """Whether there are twice as many keys as after the last look."""
        return self.index.may_compact() and len(self.index) >= 2 * self.seen

    def compact(self, stored: list[TupleStore], front: Front) -> list[TupleStore]:
        """Forget keys that no stored tuple has, if it is time to look; returns the tuples with the new key numbers."""

        def mark(used: Mask) -> None:
            for tuples in stored:
                used[tuples.key] = True

        numbers = self.compact_to(mark, front)
        return stored if numbers is None else [tuples.renumber_keys(numbers) for tuples in stored]

    def compact_to(self, mark: Callable[[Mask], None], front: Front) -> Times | None:
        """Forget keys that are not marked, if it is time to look; returns the new number of each."""
        if not self.may_compact():
            return None
        used = np.zeros(len(self.index), dtype=np.bool_)
        mark(used)
        numbers = self.index.compact(used)
        self.seen = len(self.index)
        if numbers is not None:
            front.renumber(numbers)
        return numbers

    def compact_in_blocks(self, front: Front, *stores: tuple[SortedBlocks, int]) -> Times | None:
        """The same for keys in columns of blocks, which get the new numbers."""

        def mark(used: Mask) -> None:
            for blocks, column in stores:
                blocks.mark(column, used)

        numbers = self.compact_to(mark, front)
        if numbers is not None:
            for blocks, column in stores:
                blocks.renumber(column, numbers)
        return numbers


def each_once(names: Mapping[str, str]) -> dict[str, str]:
    """Key columns by the payload column behind them, without a second one that is the same column."""
    return {key: name for i, (key, name) in enumerate(names.items()) if name not in list(names.values())[:i]}


class JoinOperator(Operator):
    ports = 2

    state = fields(keys=PART, sides=counted(PARTS), front=PART)

    def __init__(
        self,
        left_schema: Schema,
        right_schema: Schema,
        left_on: Sequence[str],
        right_on: Sequence[str],
        residual: pl.Expr | None = None,
        suffix: str = "_right",
    ) -> None:
        super().__init__()
        self.keys = JoinKeys((left_schema, right_schema), (left_on, right_on))
        self.sides = [JoinSide(left_schema), JoinSide(right_schema)]
        self.renamed = right_names(left_schema, right_schema, right_on, suffix)
        self.schema = {**left_schema, **{new: right_schema[old] for old, new in self.renamed.items()}}
        self.same = same_values(left_schema, right_schema, left_on, right_on)
        self.residual = residual
        self.front = self.keys.front(self, needed=(0, 1))

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        g = self.keys.numbers(port, chunk.rows)
        one_front = not self.front.keyed and not len(chunk.promises)
        for side in self.sides:
            side.choose_layout(len(chunk), len(self.keys.index), one_front)
        other = self.sides[1 - port]
        row, partner, start, before, after = other.overlaps(g, chunk, len(self.keys.index))
        payload = self._pair(port, chunk.payload[row], other.payloads, partner)
        out = assemble(start, before, after, payload, self.cti)
        if self.residual is not None:
            out = out.with_rows(out.rows.filter(self.residual))
        self.front.advance(port, chunk)
        self.sides[port].store(chunk, g, self.front.of(1 - port))
        other.forget(self.front.of(port))
        self.front.settle(NOTHING_HELD)
        promises = self.front.passed(self.cti, len(chunk), g[row])
        self._forget_keys()
        return replace(out, promises=promises)

    def _forget_keys(self) -> None:
        numbers = self.keys.compact_to(self._mark_keys, self.front)
        if numbers is not None:
            for side in self.sides:
                side.renumber_keys(numbers)

    def _mark_keys(self, used: Mask) -> None:
        for side in self.sides:
            side.mark_keys(used)

    def _pair(self, port: int, mine: pl.DataFrame, payloads: RowIndex, partner: Times) -> pl.DataFrame:
        """Rows of a port with their partners, which are payloads of the other port by number."""
        if port == 0:
            if not self.renamed:
                return mine
            return mine.hstack(picked(payloads.take(partner, list(self.renamed)), self.renamed, self.renamed.values()))
        theirs = [name for name in payloads.schema if name not in self.same]
        found = payloads.take(partner, theirs) if theirs else pl.DataFrame()
        left = [mine[self.same[n]].alias(n) if n in self.same else found[n] for n in payloads.schema]
        right = [mine[old].alias(new) for old, new in self.renamed.items()]
        return pl.DataFrame([*left, *right])


def same_values(left: Schema, right: Schema, left_on: Sequence[str], right_on: Sequence[str]) -> dict[str, str]:
    """The keys of the left side whose values are those of the right side wherever these are equal: other fractions may
    be equal, too, and categories have their own numbers."""
    return {
        mine: other
        for mine, other in zip(left_on, right_on, strict=True)
        if left[mine] == right[other] and (left[mine].is_integer() or left[mine] in (pl.String, pl.Boolean, pl.Date))
    }


def right_names(left: Schema, right: Schema, right_on: Sequence[str], suffix: str) -> dict[str, str]:
    """The right side's columns in the output: its keys are left out, names that clash get the suffix."""
    return {name: name + suffix if name in left else name for name in right if name not in right_on}
