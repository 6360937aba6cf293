"""The operator at the edge of a plan that validates its input, and sets the memory side of consistency:

- rows that break a promise go to the late stream, with the reason, and change nothing (`rows`);
- adjusts may arrive before the insert and the adjusts they follow. They are held until those arrive, and then leave
  joined with them: a broken chain leaves complete (`chains`);
- external CTIs become CTIs at the earliest correct position, in addition to the CTIs of the stream itself;
- with finite `remember`, a CTI is forced that far before the highest sync time seen; older state is dropped.

Rows in good order pass unchanged.

Punctuations pass like the CTI, each held back by the held adjusts it covers. For the payloads it covers, a punctuation
is a later CTI: everything is decided by the later of the two.

Feedback passes a Finalize that keeps no tuples, counts nothing and forgets nothing: a missing insert changes nothing
then. One that keeps tuples needs them all, or an adjust of a skipped tuple would look invalid.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Literal

import polars as pl

from cedr.columnar.chunk import TIMES, Chunk, Times
from cedr.columnar.picked import picked
from cedr.columnar.promises import NONE, PromiseIndex, Promises
from cedr.columnar.state import COUNTS, NUMBER, PART, PROMISES, TRANSIENT, counted, fields
from cedr.operators.base import Operator
from cedr.operators.external_ctis import ExternalCtis
from cedr.operators.feedback import PassesFeedback
from cedr.operators.finalize.chains import AppliedRows, Chains
from cedr.operators.finalize.rows import Bounds, ValidatedRows, validate_external_ctis
from cedr.operators.late import LateStream
from cedr.temporal.errors import QueryError, StreamError
from cedr.temporal.time import INF, MIN, as_time


class FinalizeOperator(PassesFeedback, Operator):
    """Any input as a valid stream.

    remember      how far behind the highest sync time elements are still accepted; INF forces nothing
    late          "collect" late elements for `take_late`, or "raise" a `StreamError` for the first one of a chunk,
                  none of which is then applied
    insert_only   the source never adjusts: no tuple is stored, an adjust is of an unknown tuple
    external      the source may send external CTIs. False saves the counting; external CTIs are then ignored
    origin        where external CTIs begin; by default at the lowest start or sync time known

    Rows are validated against what was promised before their chunk, as rows come before the progress of a chunk. So
    slicing determines when a promise begins to bind; for input that keeps its promises it changes nothing. With finite
    `remember` it does: what is forgotten depends on the slices.
    """

    same_times = False
    judges = True
    keeps_files = True

    state = fields(
        ignored=COUNTS,
        cancelled=NUMBER,
        _late=PART,
        _chains=counted(PART),
        _external=PART,
        _arrived=NUMBER,
        _highest=NUMBER,
        _promised_cti=NUMBER,
        _unforced=NUMBER,
        _before_chunk=TRANSIENT,
        _kept_back=PROMISES,
    )

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
        """CTIs without effect: backward_cti, past_external_cti; external_cti when none were expected."""
        self.cancelled = 0
        self._late = LateStream(self.schema)
        self._chains = Chains(self.schema, self)
        self._external = ExternalCtis(None if origin is None else as_time(origin, "origin"))
        self._arrived = 0
        self._highest = MIN
        self._promised_cti = MIN
        """The CTI that the input's promises add up to; the output CTI is lower while an adjust holds it back."""
        self._unforced = MIN
        """The output CTI as it would be without forcing."""
        self._before_chunk = PromiseIndex()
        """The punctuations that came before the current chunk."""
        self._kept_back = NONE
        """Punctuations that could not be passed on completely yet."""

    @property
    def late_counts(self) -> Counter[str]:
        """The number of late elements by reason."""
        return self._late.counts

    def take_late(self) -> pl.DataFrame:
        """The late elements since the last call: times, payload, `reason` and `message`.

        A late external CTI has its span in `_vs` and `_ve_new`, and no payload.
        """
        return self._late.take()

    @property
    def passes_feedback(self) -> bool:
        return self.insert_only and not self.external and self.remember == INF

    def note_highest(self, highest: int) -> None:
        """Set the highest sync time in the whole stream, when this operator gets only a part of it."""
        self._highest = max(self._highest, highest)

    def process(self, port: int, chunk: Chunk) -> Chunk:
        before, self._before_chunk = self.ctis[port], self.promised[port].copy()
        try:
            out = super().process(port, chunk)
        except StreamError:
            self.ctis[port], self.promised[port] = before, self._before_chunk
            raise
        if MIN != chunk.cti < before:
            self.ignored["backward_cti"] += 1
        return out

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        """Validate, apply, and see what the progress settles; then either raise or commit."""
        rows = ValidatedRows(picked(chunk.rows, (*TIMES, *self.schema)), self._arrived)
        external = self._external.copy()
        counted = external if self.external else None
        rows.validate(self._bounds(), counted)
        first = self._arrived + len(chunk)
        late_ctis, ignored = validate_external_ctis(chunk, first, self.cti_out, counted, self._late.schema)
        promised = self._promise(external)
        forced, highest = self._forced_and_highest(rows.sync)
        applied = AppliedRows.none()
        if not self.insert_only:
            applied = self._chains.apply(rows, self.cti_out, self._before_chunk)
        settled = self._chains.settle(applied.waiting, promised, forced, self.promised[0])
        found = rows.late + late_ctis + settled.late
        late = [some.in_files(chunk.file_names(some.positions - self._arrived)) for some in found]
        if late and self.late == "raise":
            self._chains.undo(applied)
            raise self._late.error(late)

        for some in late:
            self._late.add(some)
        out = rows.rows if self.insert_only else self._chains.output(rows.rows, applied)
        cti = max(self.cti_out, forced, settled.unforced)
        if cti > self.cti_out:
            external.forget(cti)
        if cti == INF:
            self._chains.clear()
        self._arrived += len(chunk) + len(chunk.external) + (chunk.cti != MIN)
        self._promised_cti, self._highest, self._unforced = promised, highest, max(self._unforced, settled.unforced)
        self._external, self._chains.held = external, settled.held
        self.cancelled += applied.cancelled
        self.ignored += ignored
        return Chunk(out, cti, promises=self._passed_on(chunk.promises, cti))

    # --- progress ----------------------------------------------------------------------------------------------------

    def _bounds(self) -> Bounds:
        return Bounds(
            self._promised_cti, self._unforced, self.cti_out, self.remember, self._before_chunk, self.insert_only
        )

    def _promise(self, external: ExternalCtis) -> int:
        own = max(self._promised_cti, self.cti)
        known = max(own, self.cti_out)
        counted = external.promise(known)
        return counted if counted > known else own

    def _forced_and_highest(self, sync: Times) -> tuple[int, int]:
        highest = max(self._highest, int(sync.max(initial=MIN)))
        if self.remember == INF or highest == MIN:
            return MIN, highest
        return max(MIN, highest - self.remember), highest

    def _passed_on(self, promises: Promises, cti: int) -> Promises:
        """What can be promised now of what came with this chunk and of what was kept back."""
        requested = self._kept_back.plus(promises).after(cti)
        if not len(requested) or not len(self._chains.held):
            self._kept_back = NONE
            return requested
        passed = self._held_back(requested).after(cti)
        self._kept_back = requested.beyond(passed)
        return passed

    def _held_back(self, promises: Promises) -> Promises:
        held = self._chains.held
        return promises.held_back(self._chains.payload(held.pid), held.sync)

    def current_promises(self) -> Promises:
        """All promises about parts of the stream that hold in addition to the CTI."""
        promised = self.promised[0].all().after(self.cti_out)
        return self._held_back(promised) if len(self._chains.held) else promised
