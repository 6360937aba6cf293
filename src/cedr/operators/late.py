"""The late stream: elements that were not passed on, each with the reason.

What breaks a promise is never dropped silently: it is counted, and kept until it is taken. Messages describe, like
`cedr.temporal.stream`, what arrived and which promise it breaks; they are formatted when the rows are taken, because
under weak consistency many rows are late and few are read.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from polars.exceptions import PanicException

from cedr.columnar.chunk import NEW, OLD, TIMES, VS, Chunk, Times
from cedr.columnar.promises import Promises
from cedr.columnar.state import COUNTS, FRAME_PIECES, Stateful, fields
from cedr.temporal.element import ExternalCti
from cedr.temporal.errors import StreamError
from cedr.temporal.time import INF, MIN

Reason = Literal[
    "no_lifetime",
    "below_cti",
    "below_punctuation",
    "forgotten",
    "count_exceeded",
    "unknown_tuple",
    "overlap",
    "from_the_future",
    "unreadable",
    "wrong_copy",
]
"""
no_lifetime         the times of the row make no lifetime
below_cti           its sync time lies below a CTI that the stream's own promises led to
below_punctuation   a punctuation, or the progress of its own key, promised that nothing like it would arrive
forgotten           its sync time lies below a CTI that was forced to bound the memory
count_exceeded      an external CTI promised fewer elements
unknown_tuple       an adjust whose tuple does not exist and can no longer arrive
overlap             an external CTI whose span shares an instant with another one's
from_the_future     it starts further ahead of the clock than its source allows
unreadable          a line of a file, or a whole file, that could not be read
wrong_copy          a copy in a merge contradicts the others, or breaks what the algorithm requires; it no longer counts
"""

POSITION, ELEMENT, PROMISE, REASON = "_position", "_element", "_promise", "_reason"


@dataclass(frozen=True)
class Late:
    """Rows that break a promise, the same or one each, with their places in arrival order.

    `promise` goes on from "its sync time 3 …" for what came below a CTI and from "there is no tuple …" for an adjust.
    """

    rows: pl.DataFrame
    positions: Times
    reason: Reason
    promise: str | pl.Series
    element: ExternalCti | None = None

    @staticmethod
    def of_external(
        cti: ExternalCti, position: int, reason: Reason, promise: str, schema: Mapping[str, pl.DataType]
    ) -> "Late":
        """An external CTI as a row: its span, no old end and no payload."""
        row = pl.DataFrame({name: [None] for name in schema}, schema=dict(schema))
        row = row.with_columns(pl.lit(cti.vs, pl.Int64).alias(VS), pl.lit(cti.ve, pl.Int64).alias(NEW))
        return Late(row, np.array([position], dtype=np.int64), reason, promise, cti)

    def in_files(self, files: pl.Series | None) -> "Late":
        """The same, with the names of the files the rows are from."""
        return self if files is None else replace(self, promise=naming_files(self.promise, files))

    def frame(self) -> pl.DataFrame:
        return self.rows.with_columns(
            pl.Series(POSITION, self.positions, dtype=pl.Int64),
            pl.lit(self.reason).alias(REASON),
            self.promise.alias(PROMISE) if isinstance(self.promise, pl.Series) else pl.lit(self.promise).alias(PROMISE),
            pl.lit(str(self.element) if self.element else None, pl.String).alias(ELEMENT),
        )


class LateStream(Stateful):
    """Late rows in the order in which they were found out. `counts` stay when rows are taken."""

    state = fields(counts=COUNTS, _pieces=FRAME_PIECES)

    def __init__(self, schema: Mapping[str, pl.DataType]) -> None:
        self.schema: dict[str, pl.DataType] = {**dict.fromkeys(TIMES, pl.Int64()), **schema}
        self.counts: Counter[str] = Counter()
        clash = {"reason", "message"} & set(schema)
        self._names = ("_reason", "_message") if clash else ("reason", "message")
        self._pieces: list[pl.DataFrame] = []

    def add(self, late: Late) -> None:
        self.counts[late.reason] += late.rows.height
        self._pieces.append(late.frame())

    def take(self) -> pl.DataFrame:
        """All rows since the last time, with the columns `reason` and `message`; they are no longer kept here.

        With a payload that has a column of such a name it is `_reason` and `_message`.
        """
        reason, message = self._names
        if not self._pieces:
            return pl.DataFrame(schema={**self.schema, reason: pl.String, message: pl.String})
        rows, self._pieces = self._rows(), []
        texts = rows.select(
            pl.format("element {}, {}: {}", POSITION, element_text(rows), promise_text(rows)).alias("text")
        )
        return rows.select(*self.schema, pl.col(REASON).alias(reason), texts["text"].alias(message))

    def error(self, late: Sequence[Late]) -> StreamError:
        """The error for the element that arrived first."""
        first = min(late, key=lambda found: found.positions.min())
        row = first.frame()[int(first.positions.argmin())]
        element: object = first.element
        if element is None and first.reason != "no_lifetime":
            (element,) = Chunk(first.rows[int(first.positions.argmin())]).elements()
        if element is None:
            element = row.select(element_text(row))[0, 0]
        return StreamError(element, int(first.positions.min()), row.select(promise_text(row))[0, 0])

    def _rows(self) -> pl.DataFrame:
        schema: dict[str, Any] = {
            **self.schema,
            POSITION: pl.Int64,
            REASON: pl.String,
            PROMISE: pl.String,
            ELEMENT: pl.String,
        }
        # In one piece: polars 2.1 fails to format columns whose pieces end in different places.
        return pl.concat([pl.DataFrame(schema=schema), *self._pieces], rechunk=True)

    def __len__(self) -> int:
        return sum(piece.height for piece in self._pieces)


def naming_files(texts: str | pl.Series, files: pl.Series) -> pl.Series:
    """Texts about rows, each with the name of the row's file, if any."""
    about = pl.DataFrame({"file": files}).with_columns(
        pl.lit(texts).alias("text") if isinstance(texts, str) else texts.alias("text")
    )
    place = pl.format(" (in file {})", "file").fill_null("")
    return about.select(pl.concat_str("text", place).alias("text"))["text"]


def broken_promises(known: Promises, rows: pl.DataFrame, before: Times) -> pl.Series:
    """For each row a text that names the punctuation that forbids it, which reaches to the time in `before`.

    A list or a range is named by the one value of it that matters.
    """
    texts = pl.Series([""] * rows.height, dtype=pl.String)
    # The most specific one is named, and of equally specific ones always the same.
    for names in sorted(known.schemes, key=lambda names: (-len(names), names)):
        found = pl.Series(known.about(names).of(rows) == before)
        if found.any():
            text = pl.format("it was promised: no more {}{}", payload_text(rows.select(names)), before_text(before))
            texts = texts.zip_with(~found, rows.select(text.alias("text"))["text"])
    return texts


def before_text(before: Times) -> pl.Series:
    """As a `Punctuation` prints its time."""
    times = pl.DataFrame({"before": before})
    text = pl.when(pl.col("before") == INF).then(pl.lit("")).otherwise(pl.format(" before {}", "before"))
    return times.select(text.alias("until"))["until"]


def element_text(rows: pl.DataFrame) -> pl.Expr:
    """As elements of the temporal model print."""
    payload = payload_text(rows)
    inserted = pl.format("insert {} [{}, {})", payload, time_of(VS), time_of(NEW))
    adjusted = pl.format("adjust {} [{}, {}) to {}", payload, time_of(VS), time_of(OLD), time_of(NEW))
    text = pl.when(pl.col(VS).eq_missing(pl.col(OLD))).then(inserted).otherwise(adjusted)
    return pl.coalesce(ELEMENT, text).alias("element")


def promise_text(rows: pl.DataFrame) -> pl.Expr:
    """What each element breaks."""
    too_early = pl.format("its sync time {} {}", time_text(pl.min_horizontal(OLD, NEW)), PROMISE)
    missing = pl.format("there is no tuple {} [{}, {}) {}", payload_text(rows), time_of(VS), time_of(OLD), PROMISE)
    early = pl.col(REASON).is_in(["below_cti", "forgotten"])
    unknown = pl.col(REASON) == "unknown_tuple"
    return pl.when(early).then(too_early).when(unknown).then(missing).otherwise(PROMISE).alias("promise")


def time_of(name: str) -> pl.Expr:
    return time_text(pl.col(name))


def time_text(time: pl.Expr) -> pl.Expr:
    """As `temporal.time.show` does; a missing time as None."""
    text = pl.when(time == INF).then(pl.lit("∞")).when(time == MIN).then(pl.lit("-∞")).otherwise(time.cast(pl.String))
    return text.fill_null("None")


def payload_text(rows: pl.DataFrame) -> pl.Series:
    """As a `Row` prints."""
    names = [name for name in rows.columns if name not in (*TIMES, POSITION, REASON, PROMISE, ELEMENT)]
    if not names:
        return pl.Series("payload", [""] * rows.height, dtype=pl.String)
    parts = [pl.concat_str(pl.lit(f"{name}="), text_of(rows[name])) for name in names]
    return rows.select(pl.concat_str(parts, separator=", ").alias("payload"))["payload"]


def text_of(values: pl.Series) -> pl.Series:
    if values.dtype.is_nested() or values.dtype in (pl.Boolean, pl.Binary, pl.Object):
        return pl.Series([str(value) for value in values.to_list()], dtype=pl.String)
    try:
        texts = values.cast(pl.String)
    except PanicException:  # polars cannot print a date that is too far away
        texts = values.to_physical().cast(pl.String)
    return texts.fill_null("None")
