"""Tuples and changes as users read them: public column names, times of their own types."""

from typing import Any

import polars as pl

from cedr.columnar.chunk import NEW, OLD, TIMES, VS
from cedr.columnar.tally import VE, Tally
from cedr.sources.late_rows import with_user_times
from cedr.sources.user_times import TimeType, as_user_times
from cedr.temporal.time import MIN

CHANGE = "_change"


def table_of(tally: Tally, time_type: TimeType) -> pl.DataFrame:
    """The tuples of a tally as a user reads them."""
    return renamed(as_user_times(tally.table(), (VS, VE), time_type), {VS: "vs", VE: "ve"}, tally.schema)


def changes(rows: pl.DataFrame, cti: int, time_type: TimeType, payload: dict[str, Any]) -> pl.DataFrame:
    """The rows of a chunk as a user reads them, and in a last row, `cti`, the progress that holds after them."""
    emitted = rows.select(change_kind().alias(CHANGE), pl.all())
    if cti != MIN:
        progress = pl.DataFrame({CHANGE: "cti", VS: [cti], OLD: [cti], NEW: [None]}, schema_overrides={NEW: pl.Int64})
        emitted = pl.concat([emitted, progress], how="diagonal_relaxed")
    return readable(emitted, time_type, payload)


def readable(rows: pl.DataFrame, time_type: TimeType, payload: dict[str, Any]) -> pl.DataFrame:
    """Times in the types of the user; the new end only where it differs from the end."""
    is_insert = (pl.col(OLD) == pl.col(VS)).fill_null(True)
    ends = rows.with_columns(
        pl.when(is_insert).then(pl.col(NEW)).otherwise(pl.col(OLD)).alias(OLD),
        pl.when(~is_insert).then(pl.col(NEW)).alias(NEW),
    )
    shown = as_user_times(ends, TIMES, time_type)
    if (
        message := "_message" if "_message" in shown.columns else "message"
    ) in shown.columns and message not in payload:
        shown = shown.with_columns(with_user_times(shown[message], time_type).alias(message))
    return renamed(shown, {CHANGE: "change", VS: "vs", OLD: "ve", NEW: "ve_new"}, payload)


def change_kind() -> pl.Expr:
    """What a row does: insert, adjust or remove."""
    is_insert, removes = pl.col(OLD) == pl.col(VS), pl.col(NEW) == pl.col(VS)
    return pl.when(is_insert).then(pl.lit("insert")).when(removes).then(pl.lit("remove")).otherwise(pl.lit("adjust"))


def renamed(frame: pl.DataFrame, names: dict[str, str], payload: dict[str, Any]) -> pl.DataFrame:
    """Columns by their public names; a name the payload has already gets an underscore."""
    free = {inner: f"_{shown}" if shown in payload else shown for inner, shown in names.items()}
    return frame.rename({inner: shown for inner, shown in free.items() if inner in frame.columns})
