"""The first job of a Finalize: check rows and external CTIs against everything that was promised before them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import TIMES, Chunk, Times
from cedr.columnar.promises import PromiseIndex
from cedr.operators.external_ctis import ExternalCtis
from cedr.operators.late import Late, Reason, broken_promises
from cedr.temporal.time import show

Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Bounds:
    """The promises that bind the rows of a chunk: those made before it.

    promised       the time that the input has promised
    unforced       the output CTI as it would be without forcing
    cti_out        the output CTI
    remember       how far behind the highest sync time rows are accepted
    punctuations   promises about parts of the stream
    insert_only    no tuple is stored, so every adjust is of an unknown tuple
    """

    promised: int
    unforced: int
    cti_out: int
    remember: int
    punctuations: PromiseIndex
    insert_only: bool


class ValidatedRows:
    """The rows of a chunk with their positions in arrival order, and the late ones that were taken out."""

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

    def validate(self, bounds: Bounds, external: ExternalCtis | None) -> None:
        """Take out rows that break a promise; count the others for the external CTIs."""
        self.refuse(self.with_missing_times(), "no_lifetime", "a time is missing")
        vs, old, new = self.times
        wrong = (old < vs) | (new < vs) | (old == new)
        self.refuse(
            wrong,
            "no_lifetime",
            "its times are not a valid lifetime: an end must be after the start, and an adjust must change the end",
        )
        t = show(max(bounds.promised, bounds.unforced))  # as the input promised it, not as far as it was passed on
        broken = f"lies before {t}, but cti {t} promised that nothing before it would come"
        self.refuse(self.sync < bounds.unforced, "below_cti", broken)
        self._refuse_by_punctuations(bounds.punctuations)
        if external is not None:
            for span, positions in external.excess(self.sync, self.positions):
                promise = f"{span} promised no more than {span.n} elements with a sync time in it, all came before"
                self.refuse(np.isin(self.positions, positions), "count_exceeded", promise)
            external.receive(self.sync)
        if bounds.cti_out > bounds.unforced:
            t, past = show(bounds.cti_out), show(bounds.remember)
            forgotten = f"lies before {t}; what is more than {past} before the highest sync time seen is forgotten"
            self.refuse(self.sync < bounds.cti_out, "forgotten", forgotten)
        if bounds.insert_only:
            vs, old, _ = self.times
            self.refuse(old != vs, "unknown_tuple", "to adjust; no tuple is kept, as only inserts were expected")

    def with_missing_times(self) -> Mask:
        if not any(self.rows[name].null_count() for name in TIMES):
            return np.zeros(0, dtype=np.bool_)
        return self.rows.select(pl.any_horizontal(pl.col(TIMES).is_null()).alias("missing"))["missing"].to_numpy()

    def _refuse_by_punctuations(self, punctuations: PromiseIndex) -> None:
        if not punctuations or not len(self):
            return
        before = punctuations.of(self.rows)
        if (wrong := self.sync < before).any():
            promises = broken_promises(punctuations.all(), self.rows.filter(pl.Series(wrong)), before[wrong])
            self.refuse(wrong, "below_punctuation", promises)

    def refuse(self, wrong: Mask, reason: Reason, promise: str | pl.Series) -> None:
        if not wrong.any():
            return
        self.late.append(Late(self.rows.filter(pl.Series(wrong)), self.positions[wrong], reason, promise))
        self.rows, self.positions = self.rows.filter(pl.Series(~wrong)), self.positions[~wrong]


def validate_external_ctis(
    chunk: Chunk, first: int, cti_out: int, external: ExternalCtis | None, schema: Mapping[str, pl.DataType]
) -> tuple[list[Late], Counter[str]]:
    """Add the external CTIs of a chunk, numbered from `first`; returns the invalid ones, and counts the useless ones.

    `external` is None when the source was declared to send none.
    """
    late: list[Late] = []
    ignored: Counter[str] = Counter()
    for position, cti in enumerate(chunk.external, start=first):
        if external is None:
            ignored["external_cti"] += 1
        elif cti.ve <= cti_out:
            ignored["past_external_cti"] += 1
        elif broken := external.broken(cti):
            late.append(Late.of_external(cti, position, *broken, schema))
        else:
            external.add(cti)
    return late, ignored
