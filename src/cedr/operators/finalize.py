"""Finalize: what stands at the edge of a plan and trusts nothing (technical report, 4.6).

It makes a valid stream out of whatever arrives, and sets the memory side of consistency:

- rows that break a promise go to the late stream, with the reason, and change nothing;
- adjusts may overtake the insert and the adjusts they follow. They are held until what they need has come, then leave
  joined with it: a broken chain comes out whole;
- external CTIs become CTIs at the earliest correct place, beside the CTIs the stream has itself;
- with finite `remember`, a CTI is forced that far before the highest sync time seen; what is older is forgotten.

What arrives in good order passes as it is.

*When does a held adjust hold a CTI back?* Say the input promises t, and `x -> f` waits for a tuple that ends at x.
While `min(x, f) >= t` it does not matter. Below that, its insert can no longer come (`vs <= min(x, f) < t`). But when a
tuple with its start and payload is there and `x >= t`, a missing `w -> x` may still come and lead that tuple to f < t:

    insert [0, 10)    12 -> 4    cti 5    10 -> 12         the tuple ends at 4, so CTI 5 has to wait for `10 -> 12`

The report drops `12 -> 4` here and loses the end of the tuple. We put out CTI 4 until the chain is whole, or until the
promise has passed x and the missing link can no longer come. In all other cases the adjust is an *unknown tuple*.

Punctuations pass as the CTI does, each held back by the held adjusts it is about. For a payload that one is about it is
a later CTI: all of the above is decided by the later of the two.

Feedback passes a Finalize that keeps no tuples, counts nothing and forgets nothing: an insert that never came changes
nothing then. One that keeps tuples needs them all, or it would take an adjust of one that was left out for a mistake.

Adjusts that lead in a circle take back what they say. They can be left over when a tuple went ahead by another way;
they change nothing, hold nothing back, and are counted in `cancelled`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from cedr.columnar.chunk import TIMES, Chunk, Times, assemble
from cedr.columnar.index import Ids, RowIndex
from cedr.columnar.picked import picked
from cedr.columnar.promises import NONE, PromiseIndex, Promises
from cedr.kernels.chains import merge, nodes, on_cycles, reachable
from cedr.kernels.tuple_store import TupleStore
from cedr.operators.base import Operator, State
from cedr.operators.external_ctis import ExternalCtis
from cedr.operators.late import Late, LateStream, Reason, broken_promises
from cedr.temporal.errors import QueryError, StreamError
from cedr.temporal.time import INF, MIN, as_time, show

Mask = np.ndarray[Any, np.dtype[np.bool_]]

FEW_PAYLOADS = 4096


class Finalize(Operator):
    """Any input as a valid stream.

    remember      how far behind the highest sync time elements are still taken; INF forces nothing
    late          "collect" late elements for `take_late`, or "raise" a `StreamError` for the first one of a chunk,
                  of which then nothing has been worked in
    insert_only   the source never adjusts: no tuple is stored, an adjust is an unknown tuple
    external      the source may send external CTIs. Saying that it never does saves the counting; they are ignored then
    origin        where external CTIs begin; by default at the lowest start or sync time known

    Rows are judged by what was promised before their chunk, as rows come before the progress of a chunk. So slicing
    says when a promise begins to bind; for input that keeps its promises it changes nothing. With finite `remember` it
    does: what is forgotten depends on the slices.
    """

    judges = True
    keeps_files = True

    def __init__(
        self,
        schema: Mapping[str, pl.DataType],
        remember: int = INF,
        late: Literal["collect", "raise"] = "collect",
        insert_only: bool = False,
        *,
        external: bool = True,
        origin: int | None = None,
    ) -> None:
        super().__init__()
        if as_time(remember, "remember") < 0:
            raise QueryError(f"remember is {remember}; it is a length of time, from 0 to INF")
        if late not in ("collect", "raise"):
            raise QueryError(f"late is {late!r}; it is 'collect' or 'raise'")
        self.schema, self.remember, self.late = dict(schema), remember, late
        self.insert_only, self.external = insert_only, external
        self.ignored: Counter[str] = Counter()
        """CTIs that say nothing new: backward_cti, past_external_cti; external_cti when none were expected."""
        self.cancelled = 0
        self._late = LateStream(self.schema)
        self._arrived = 0
        self._highest = MIN
        self._promised = MIN
        """What the input's promises come to; the output CTI is lower while an adjust holds it back."""
        self._unforced = MIN
        """What the output CTI would be without forcing."""
        self._external = ExternalCtis(None if origin is None else as_time(origin, "origin"))
        self._index = RowIndex(self.schema)
        self._store = TupleStore()
        self._held = Edges.none()
        self._row_bytes = 0
        self._known = PromiseIndex()
        """The punctuations that came before the chunk at hand."""
        self._kept_back = NONE
        """Punctuations of which not all could be passed on yet."""

    @property
    def late_counts(self) -> Counter[str]:
        """How many elements were late, by reason."""
        return self._late.counts

    def take_late(self) -> pl.DataFrame:
        """The late elements since the last time: times, payload, `reason` and `message`.

        A late external CTI has its span in `_vs` and `_ve_new`, and no payload.
        """
        return self._late.take()

    def skip_before(self, t: int, judged: bool = True) -> int:
        super().skip_before(t, judged)
        passes = self.insert_only and not self.external and self.remember == INF
        return self.skipped if passes else MIN

    def saw(self, highest: int) -> None:
        """The highest sync time in the whole stream, when only a part of it comes here."""
        self._highest = max(self._highest, highest)

    # --- the steps -------------------------------------------------------------------------------------------------

    def process(self, port: int, chunk: Chunk) -> Chunk:
        before, self._known = self.ctis[port], self.promised[port].copy()
        try:
            out = super().process(port, chunk)
        except StreamError:
            self.ctis[port], self.promised[port] = before, self._known
            raise
        if MIN != chunk.cti < before:
            self.ignored["backward_cti"] += 1
        return out

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        """Judge, work in, see what the progress settles; then either raise or make it so."""
        rows = ValidatedRows(picked(chunk.rows, (*TIMES, *self.schema)), self._arrived)
        external = self._external.copy()
        self._judge(rows, external)
        past = self._judge_external(chunk, rows, external)
        promised = self._promise(external)
        forced, highest = self._forced(rows.sync)
        worked = Worked.nothing() if self.insert_only else self._work_in(rows)
        settled = self._settle(worked.waiting, promised, forced)
        late = [found.in_files(chunk.file_names(found.positions - self._arrived)) for found in rows.late + settled.late]
        if late and self.late == "raise":
            self._store.take_back(worked.applied, worked.edges.vs, worked.edges.pid, worked.edges.old, worked.edges.new)
            raise self._late.error(late)

        for found in late:
            self._late.add(found)
        out = rows.rows if self.insert_only else self._output(rows.rows, worked)
        cti = max(self.cti_out, forced, settled.unforced)
        if cti > self.cti_out:
            external.forget(cti)
        if cti == INF:
            self._store, self._index = TupleStore(), RowIndex(self.schema)
        self._arrived += len(chunk) + len(chunk.external) + (chunk.cti != MIN)
        self._promised, self._highest, self._unforced = promised, highest, max(self._unforced, settled.unforced)
        self._external, self._held = external, settled.held
        self.cancelled += worked.cancelled
        self.ignored += past
        self._row_bytes = int(out.estimated_size() / out.height) if out.height else self._row_bytes
        return Chunk(out, cti, promises=self._passed_on(chunk.promises, cti))

    def _passed_on(self, promises: Promises, cti: int) -> Promises:
        """What can be promised now of what came with this chunk and of what was kept back."""
        asked = self._kept_back.plus(promises).after(cti)
        if not len(asked) or not len(self._held):
            self._kept_back = NONE
            return asked
        passed = asked.held_back(self._payload(self._held.pid), self._held.sync).after(cti)
        self._kept_back = asked.beyond(passed)
        return passed

    def standing(self) -> Promises:
        """All that is promised about parts of the stream, beside the CTI."""
        promised = self.promised[0].all().after(self.cti_out)
        return promised.held_back(self._payload(self._held.pid), self._held.sync) if len(self._held) else promised

    # --- judging -----------------------------------------------------------------------------------------------------

    def _judge(self, rows: "ValidatedRows", external: ExternalCtis) -> None:
        """Take out what breaks a promise; count what external CTIs count."""
        rows.refuse(rows.with_missing_times(), "no_lifetime", "a time is missing")
        vs, old, new = rows.times
        wrong = (old < vs) | (new < vs) | (old == new)
        rows.refuse(
            wrong, "no_lifetime", "its times make no lifetime: ends lie after starts, and an adjust changes the end"
        )
        t = show(max(self._promised, self._unforced))  # as the input promised it, not as far as it was passed on
        broken = f"lies before {t}, but cti {t} promised that nothing before it would come"
        rows.refuse(rows.sync < self._unforced, "below_cti", broken)
        if self._known and len(rows):
            before = self._known.of(rows.rows)
            if (wrong := rows.sync < before).any():
                promises = broken_promises(self._known.all(), rows.rows.filter(pl.Series(wrong)), before[wrong])
                rows.refuse(wrong, "below_punctuation", promises)
        if self.external:
            for span, positions in external.excess(rows.sync, rows.positions):
                promise = f"{span} promised no more than {span.n} elements with a sync time in it, all came before"
                rows.refuse(np.isin(rows.positions, positions), "count_exceeded", promise)
            external.receive(rows.sync)
        if self.cti_out > self._unforced:
            t, past = show(self.cti_out), show(self.remember)
            forgotten = f"lies before {t}; what is more than {past} before the highest sync time seen is forgotten"
            rows.refuse(rows.sync < self.cti_out, "forgotten", forgotten)
        if self.insert_only:
            vs, old, _ = rows.times
            rows.refuse(old != vs, "unknown_tuple", "to adjust; no tuple is kept, as only inserts were expected")

    def _judge_external(self, chunk: Chunk, rows: "ValidatedRows", external: ExternalCtis) -> Counter[str]:
        """Take in the external CTIs of a chunk; returns those that say nothing."""
        ignored: Counter[str] = Counter()
        for position, cti in enumerate(chunk.external, start=self._arrived + len(chunk)):
            if not self.external:
                ignored["external_cti"] += 1
            elif cti.ve <= self.cti_out:
                ignored["past_external_cti"] += 1
            elif broken := external.broken(cti):
                rows.late.append(Late.of_external(cti, position, *broken, self._late.schema))
            else:
                external.add(cti)
        return ignored

    def _promise(self, external: ExternalCtis) -> int:
        own = max(self._promised, self.cti)
        known = max(own, self.cti_out)
        counted = external.promise(known)
        return counted if counted > known else own

    def _forced(self, sync: Times) -> tuple[int, int]:
        highest = max(self._highest, int(sync.max(initial=MIN)))
        if self.remember == INF or highest == MIN:
            return MIN, highest
        return max(MIN, highest - self.remember), highest

    # --- chains ------------------------------------------------------------------------------------------------------

    def _work_in(self, rows: "ValidatedRows") -> "Worked":
        """Let rows and held adjusts find their tuples."""
        if not len(rows) and not len(self._held):
            return Worked.nothing()
        self._make_room(len(rows) + len(self._held))
        vs, old, new = rows.times
        edges = Edges(vs, self._index.ids(rows.rows), old, new, rows.positions)
        held = len(self._held)
        if held:
            edges = self._held.plus(edges)
        applied = self._store.work_in(edges.vs, edges.pid, edges.old, edges.new, held)
        if len(applied) == len(edges):
            return Worked(edges, applied, Edges.none(), not held and bool((applied[1:] > applied[:-1]).all()))
        rest = np.ones(len(edges), dtype=np.bool_)
        rest[applied] = False
        waiting = edges[rest]
        circling = on_cycles(*waiting.graph())
        return Worked(edges, applied, waiting[~circling], False, int(circling.sum()))

    def _output(self, rows: pl.DataFrame, worked: "Worked") -> pl.DataFrame:
        """The rows that found their tuples; when chains were broken, each chain as one row."""
        if worked.in_order:
            return rows
        edges = worked.edges[worked.applied]
        last, kept = merge(*edges.graph())
        joined, new = edges[kept], edges.new[last][kept]
        return assemble(joined.vs, joined.old, new, self._payload(joined.pid)).rows

    def _payload(self, ids: Ids) -> pl.DataFrame:
        return self._index.take(ids) if self.schema else pl.DataFrame()

    def _settle(self, held: "Edges", promised: int, forced: int) -> "Settled":
        """Which adjusts can go on waiting, and how far the CTI can go meanwhile."""
        if not len(held):
            return Settled(held, promised, [])
        fronts = self._fronts(held.pid, promised)
        below = held.sync < fronts
        hopeful = self._can_connect(held, fronts) if below.any() else below
        unforced = min(promised, int(held.sync[hopeful].min(initial=INF)))
        hopeless, forgotten = below & ~hopeful, held.sync < forced
        late = self._late_adjusts(held[hopeless], "unknown_tuple", "to adjust; it was never inserted, or was removed")
        t = show(forced)
        late += self._late_adjusts(held[forgotten & ~hopeless], "forgotten", f"lies before {t}, where memory ends")
        return Settled(held[~hopeless & ~forgotten], unforced, late)

    def _fronts(self, pid: Ids, cti: int) -> Times:
        """For each payload the time before which nothing about it comes any more."""
        if not self.promised[0] or not len(pid):
            return np.full(len(pid), cti)
        return np.maximum(self.promised[0].of(self._payload(pid)), cti)

    def _can_connect(self, held: "Edges", fronts: Times) -> Mask:
        """Held adjusts for which a later element, none of which lies below its front, could still bring a tuple."""
        later = (held.old >= fronts) & (fronts < INF)
        if not later.any():
            return later
        vs, pid, end, _ = self._store.live(int(fronts.min()))
        alive = pl.DataFrame({"vs": vs, "pid": pid, "end": end}).group_by("vs", "pid").agg(pl.col("end").max())
        keys = pl.DataFrame({"vs": held.vs, "pid": held.pid})
        ends = keys.join(alive, on=["vs", "pid"], how="left", maintain_order="left")["end"].fill_null(MIN)
        return reachable(*held.graph(), later & (ends.to_numpy() >= fronts))

    def _late_adjusts(self, edges: "Edges", reason: Reason, promise: str) -> list[Late]:
        if not len(edges):
            return []
        rows = assemble(edges.vs, edges.old, edges.new, self._payload(edges.pid)).rows
        return [Late(rows, edges.position, reason, promise)]

    # --- state -------------------------------------------------------------------------------------------------------

    def _make_room(self, rows: int) -> None:
        """When the store is full, or the payloads are mostly of tuples long gone: forget what no adjust can reach."""
        few_payloads = len(self._index) <= 4 * (len(self._store) + len(self._held)) + FEW_PAYLOADS
        if few_payloads and self._store.has_room(rows):
            return
        vs, pid, end, count = self._live(self._known)
        renumbered = self._index.compact(np.concatenate([pid, self._held.pid]))
        if renumbered is not None:
            pid = renumbered[pid]
            self._held = self._held.with_ids(renumbered)
        self._store.refill((vs, pid, end, count), rows)

    def _live(self, known: PromiseIndex) -> tuple[Times, Ids, Times, Times]:
        """The tuples that an adjust can still reach: those that end no earlier than what is promised for them."""
        vs, pid, end, count = self._store.live(self.cti_out)
        if not known or not len(pid):
            return vs, pid, end, count
        fronts = known.of(self._payload(pid))
        kept = (end >= fronts) & (fronts < INF)
        return vs[kept], pid[kept], end[kept], count[kept]

    def state_size(self) -> tuple[int, int]:
        payloads = len(self._index) * self._row_bytes
        counted = 8 * len(self._external)
        return len(self._store) + len(self._held), self._store.nbytes + payloads + counted + self._late.nbytes

    def save(self) -> State:
        return {
            "times": (self._arrived, self._highest, self._promised, self._unforced),
            "ignored": dict(self.ignored),
            "cancelled": self.cancelled,
            "late": self._late.save(),
            "external": self._external.save(),
            "payloads": self._index.snapshot(),
            "tuples": self._live(self.promised[0]),
            "held": self._held.columns(),
            "kept_back": self._kept_back,
        }

    def load(self, state: State) -> None:
        self._arrived, self._highest, self._promised, self._unforced = state["times"]
        self.ignored, self.cancelled = Counter(state["ignored"]), state["cancelled"]
        self._late.load(state["late"])
        self._external.load(state["external"])
        self._index = RowIndex(self.schema)
        numbers = self._index.ids(state["payloads"]) if self.schema else np.zeros(1, dtype=np.int64)
        vs, pid, end, count = state["tuples"]
        self._store.refill((vs, numbers[pid], end, count), 0)
        self._held = Edges(*state["held"]).with_ids(numbers)
        self._kept_back = state["kept_back"]


class ValidatedRows:
    """Rows of a chunk with their places in arrival order, and the late ones that were taken out."""

    def __init__(self, rows: pl.DataFrame, arrived: int) -> None:
        self.rows = rows
        self.positions = np.arange(arrived, arrived + rows.height)
        self.late: list[Late] = []

    def __len__(self) -> int:
        return self.rows.height

    @property
    def times(self) -> tuple[Times, Times, Times]:
        chunk = Chunk(self.rows)
        return chunk.vs, chunk.old, chunk.new

    @property
    def sync(self) -> Times:
        return Chunk(self.rows).sync

    def with_missing_times(self) -> Mask:
        if not any(self.rows[name].null_count() for name in TIMES):
            return np.zeros(0, dtype=np.bool_)
        return self.rows.select(pl.any_horizontal(pl.col(TIMES).is_null()).alias("missing"))["missing"].to_numpy()

    def refuse(self, wrong: Mask, reason: Reason, promise: str | pl.Series) -> None:
        if not wrong.any():
            return
        self.late.append(Late(self.rows.filter(pl.Series(wrong)), self.positions[wrong], reason, promise))
        self.rows, self.positions = self.rows.filter(pl.Series(~wrong)), self.positions[~wrong]


@dataclass(frozen=True)
class Edges:
    """Rows with the number of their payload and their place in arrival order, as columns."""

    vs: Times
    pid: Ids
    old: Times
    new: Times
    position: Times

    @staticmethod
    def none() -> "Edges":
        return Edges(*(np.empty(0, dtype=np.int64) for _ in range(5)))

    def __len__(self) -> int:
        return len(self.vs)

    def __getitem__(self, which: Any) -> "Edges":
        return Edges(*(column[which] for column in self.columns()))

    def columns(self) -> list[Times]:
        return [self.vs, self.pid, self.old, self.new, self.position]

    def plus(self, other: "Edges") -> "Edges":
        return Edges(*(np.concatenate(both) for both in zip(self.columns(), other.columns(), strict=True)))

    def with_ids(self, numbers: Ids) -> "Edges":
        return Edges(self.vs, numbers[self.pid], self.old, self.new, self.position)

    def graph(self) -> Any:
        """The edges as `cedr.kernels.chains` takes them."""
        return nodes(self.vs, self.pid, self.old, self.new)

    @property
    def sync(self) -> Times:
        return np.minimum(self.old, self.new)


@dataclass(frozen=True)
class Worked:
    """What became of a chunk: all rows, which of them found their tuple in which order, which wait."""

    edges: Edges
    applied: Times
    waiting: Edges
    in_order: bool
    cancelled: int = 0

    @staticmethod
    def nothing() -> "Worked":
        return Worked(Edges.none(), np.empty(0, dtype=np.int64), Edges.none(), in_order=True)


@dataclass(frozen=True)
class Settled:
    """Adjusts that still wait, the CTI they allow, and those that can no longer."""

    held: Edges
    unforced: int
    late: list[Late]
