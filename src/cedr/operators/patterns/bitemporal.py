"""Patterns over events whose lifetimes are modified: at each instant of occurrence time, the pattern over valid time.

The stream's axis is occurrence time; `id, vs, ve`, the header on the valid axis, travel in the payload. Between two
neighbouring occurrence end points of a key's events nothing changes, so each such interval is a group of its own in one
evaluation. Results that go on in the next interval are one event again. With every chunk the keys that it changes are
evaluated again; what the others give is kept. Of what occurred before the last promise only the starts of results that
may go on are remembered.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.index import RowIndex
from cedr.columnar.sharding import absorb
from cedr.columnar.state import ARRAYS, NUMBER, PART, PARTS, TRANSIENT, columns, counted, each, fields
from cedr.kernels import endpoints as ep
from cedr.kernels import levels as lv
from cedr.kernels.hashing import SEED
from cedr.kernels.instances import expanded
from cedr.kernels.sorting import argsort_by_group_and_time
from cedr.operators.base import Operator
from cedr.operators.front import still_matters
from cedr.operators.latency import EmissionPolicy
from cedr.operators.patterns.entry import Entry
from cedr.operators.patterns.headers import Headers
from cedr.operators.patterns.instances import Mask, Scope
from cedr.operators.patterns.levels import NO_KEY
from cedr.operators.patterns.prepared import PreparedPattern
from cedr.operators.patterns.selection import MatchSelection
from cedr.operators.synopsis import OutputOrder, Synopsis
from cedr.operators.tuple_store import TupleStore
from cedr.plan.latency import Latency
from cedr.plan.patterns.outputs import Outputs
from cedr.plan.patterns.tree import Condition, Pattern
from cedr.temporal.time import MIN

VERSION: Outputs = (("id", pl.col("Id")), ("vs", pl.col("Vs")), ("ve", pl.col("Ve")))
"""The header of versions, in payloads."""


class KnownVersions(NamedTuple):
    """Known versions, copies repeated: key, occurrence interval, payload, valid lifetime and id."""

    g: Times
    start: Times
    end: Times
    slot: Times
    bits: Times
    variant: Times
    vs: Times
    ve: Times
    id: Times


class KnownResults(NamedTuple):
    """Results of elementary intervals: the key they are of, the number of the payload, and the occurrence interval."""

    key: Times
    number: Times
    start: Times
    end: Times

    def take(self, which: Times | Mask) -> "KnownResults":
        return KnownResults(*(column[which] for column in self))


NO_RESULTS = KnownResults(*(np.empty(0, dtype=np.int64) for _ in KnownResults._fields))


class KnownKeys:
    """By payload number, for each variant the key and the event types that accept it."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.clear()

    def clear(self) -> None:
        """Keys are numbered again, so none is left over."""
        self.entry.keys.index.restore(self.entry.keys.index.rows.clear())
        self.keys = [np.empty(0, dtype=np.int64) for _ in self.entry.ports]
        self.bits = [np.empty(0, dtype=np.int64) for _ in self.entry.ports]

    def see(self, port: int, payloads: RowIndex) -> None:
        """Take in the payloads that are new."""
        for variant in np.flatnonzero(self.entry.ports == port):
            known = len(self.keys[variant])
            if known == len(payloads):
                continue
            rows = payloads.rows[known:]
            bits = self.entry.bits(rows, np.array([variant]))[0]
            self.keys[variant] = np.concatenate((self.keys[variant], self.entry.keys.numbers(int(variant), rows)))
            self.bits[variant] = np.concatenate((self.bits[variant], bits))


class BitemporalMatchOperator(Operator):
    state = fields(
        prepared=TRANSIENT,
        known=TRANSIENT,
        found=TRANSIENT,
        payloads=PARTS,
        results=PART,
        tuples=counted(each(columns(TupleStore))),
        since=NUMBER,
        going_on=ARRAYS,
        order=PART,
        emission=PART,
        emitted=PART,
    )
    """What is known of keys, and what they give, is computed again when it is missing."""

    def __init__(
        self,
        schemas: Sequence[Mapping[str, pl.DataType]],
        pattern: Pattern,
        where: Sequence[Condition],
        outputs: Outputs,
        schema: Mapping[str, pl.DataType],
        latency: Latency = "perfect",
    ) -> None:
        self.ports = len(schemas)
        super().__init__()
        self.schema = dict(schema)
        self.prepared = PreparedPattern(schemas, pattern, where, (*VERSION, *outputs), start="vs")
        self.emission = EmissionPolicy(latency, growing=True)
        self.payloads = [RowIndex(dict(s)) for s in schemas]
        self.tuples = [TupleStore.empty() for _ in schemas]
        self.results = RowIndex(self.schema)
        self.emitted = Synopsis(0)
        self.order = OutputOrder()
        self.known = KnownKeys(self.prepared.entry)
        self.found: KnownResults | None = None
        """What all keys give; None if all have to be evaluated."""
        self.since = MIN
        nothing = np.empty(0, dtype=np.int64)
        self.going_on = (nothing, nothing)
        """Numbers and starts of results that held right before `since`."""

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        self.order.watch(chunk, self.promised[port])
        if len(chunk):
            numbers = self.payloads[port].ids(chunk.rows)
            one_group = np.zeros(len(chunk), dtype=np.int64)
            changes = TupleStore.changes(one_group, chunk.vs, chunk.old, chunk.new, numbers)
            self.tuples[port] = self.tuples[port].merge(changes)
            self.known.see(port, self.payloads[port])
            self._evaluate(self._keys_of(port, numbers))
        elif self.found is None:
            self._evaluate(NO_RESULTS.key)
        self.emission.see(self, port, chunk)
        number, start, end = self._answer()
        front = np.array([self.cti])
        emits, held = self.emission.select(number, start, end, front, np.array([self.cti_out]))
        settled = min(self.cti, int(held[0]))
        no_words = np.empty((int(emits.sum()), 0), dtype=np.int64)
        emitted = self.emitted.update(number[emits], start[emits], end[emits], no_words, self.emission.reached(front))
        changed, _, at, before, after = emitted
        out = self.order.chunk(at, before, after, self.results.take(changed), settled)
        if settled > self.cti_out:
            self._forget(settled, number, start, end)
        return out

    # --- the answer ----------------------------------------------------------------------------------------------

    def _answer(self) -> tuple[Times, Times, Times]:
        """Results by number with their occurrence intervals, those that meet as one, in order."""
        assert self.found is not None
        now = self.found.take(self.found.end > self.since)
        pieces = (now.number, np.maximum(now.start, self.since), now.end)
        number, start = self.going_on
        until = np.full(len(number), self.since)
        number, start, end = (np.concatenate(both) for both in zip((number, start, until), pieces, strict=True))
        once = np.ones((len(number), 1), dtype=np.int64)
        changes = ep.changes_of(number, start, start, end, once[:, 0], once)
        g, t, _, counts = ep.merge(*ep.empty_endpoints(1), *changes)
        nothing = np.empty(0, dtype=np.int64)
        return lv.levels(g, t, ep.live_copies(g, counts)[:, 0], nothing, nothing)

    def _keys_of(self, port: int, numbers: Times) -> Times:
        """The keys of payloads of a port, with all event types."""
        variants = np.flatnonzero(self.known.entry.ports == port)
        return np.unique(np.concatenate([self.known.keys[v][numbers] for v in variants] or [NO_RESULTS.key]))

    def _evaluate(self, keys: Times) -> None:
        """Find again what these keys give, or all if nothing is known."""
        if self.found is None:
            for port, payloads in enumerate(self.payloads):
                self.known.see(port, payloads)
            self.found = self._results(None)
        else:
            others = ~np.isin(self.found.key, keys)
            kept, new = self.found.take(others), self._results(keys)
            self.found = KnownResults(*(np.concatenate(both) for both in zip(kept, new, strict=True)))

    def _results(self, keys: Times | None) -> KnownResults:
        """Results of each elementary interval of occurrence time since the last promise, for some keys or all."""
        versions = self._versions(keys)
        points, place = np.unique(
            np.stack((np.tile(versions.g, 2), np.concatenate((versions.start, versions.end))), axis=1),
            axis=0,
            return_inverse=True,
        )
        which, interval = expanded(place[: len(versions.g)], place[len(versions.g) :])
        order = argsort_by_group_and_time(interval, versions.vs[which])
        which, interval = which[order], interval[order]
        headers = Headers(versions.vs, versions.id, versions.ve)
        groups = np.arange(len(points))
        selection = MatchSelection(headers, {}, groups, np.full(len(points), MIN))
        evaluation = self.prepared.evaluation(headers, selection, versions.slot, versions.variant, self._attribute)
        alone = points[:, 0] >= len(self.prepared.entry.keys.index)
        scope = Scope(interval, versions.vs[which], which, versions.bits[which], alone, {})
        found = evaluation.instances(self.prepared.root, scope)
        ve = headers.end(self.prepared.root, found.columns, found.vs)
        numbers = self.results.ids(self.prepared.rendering.payload(evaluation, found, ve))
        key = np.where(alone, NO_KEY, points[:, 0])
        return KnownResults(key[found.g], numbers, points[found.g, 1], points[found.g + 1, 1])

    def _versions(self, keys: Times | None) -> KnownVersions:
        """All versions of some keys, or all; each without a key is a group of its own."""
        entry = self.prepared.entry
        parts: list[tuple[Times, ...]] = []
        for variant, port in enumerate(entry.ports):
            stored = self.tuples[port]
            key, bits = self.known.keys[variant], self.known.bits[variant]
            use = bits != 0 if keys is None else (bits != 0) & np.isin(key, keys)
            stored = stored.where(use[stored.value] & (stored.ve > self.since))
            start, end, number = (np.repeat(a, stored.copies) for a in (stored.vs, stored.ve, stored.value))
            rows = self.payloads[port].take(number)
            columns = [rows[name].cast(pl.Int64).to_numpy() for name in ("vs", "ve")]
            same = np.full(len(number), variant)
            start = np.maximum(start, self.since)
            parts.append((key[number], start, end, number, bits[number], same, *columns, version_ids(rows["id"])))
        versions = KnownVersions(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
        alone = np.flatnonzero(versions.g == NO_KEY)
        versions.g[alone] = len(entry.keys.index) + np.arange(len(alone))
        return versions

    def _attribute(self, port: int, name: str) -> pl.Series:
        return self.payloads[port].rows[name]

    # --- state ---------------------------------------------------------------------------------------------------

    def _forget(self, settled: int, number: Times, start: Times, end: Times) -> None:
        limit = np.array([settled])
        on = (start < settled) & still_matters(number, end, limit)
        self.since, self.going_on = settled, (number[on], start[on])
        self.emitted.forget(settled)
        compacted = False
        for port, (payloads, tuples) in enumerate(zip(self.payloads, self.tuples, strict=True)):
            kept = tuples.where(still_matters(tuples.key, tuples.ve, limit))
            numbers = payloads.compact(kept.value)
            self.tuples[port] = kept if numbers is None else kept.renumber_values(numbers)
            compacted = compacted or numbers is not None
        if compacted:
            self.known.clear()
            self.found = None
        elif self.found is not None:
            self.found = self.found.take(self.found.end > settled)
        found = NO_RESULTS if self.found is None else self.found
        numbers = self.results.compact(np.concatenate((self.emitted.g, self.going_on[0], found.number)))
        if numbers is not None:
            self.emitted.g, self.going_on = numbers[self.emitted.g], (numbers[self.going_on[0]], self.going_on[1])
            self.found = self.found and found._replace(number=numbers[found.number])

    def restored(self) -> None:
        self.known.clear()
        self.found = None


def version_ids(ids: pl.Series) -> Times:
    """Whole numbers unchanged, others and missing ones as a hash."""
    hashes = np.full(len(ids), SEED, dtype=np.uint64)
    absorb(hashes, ids)
    if not ids.dtype.is_integer():
        return hashes.view(np.int64)
    return np.where(ids.is_null().to_numpy(), hashes.view(np.int64), ids.cast(pl.Int64).fill_null(0).to_numpy())
