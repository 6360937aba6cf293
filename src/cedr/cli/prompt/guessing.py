"""Infers which columns of a table are its times and its event types, from their names and types."""

from collections.abc import Iterable, Mapping

import polars as pl

from cedr.temporal.errors import QueryError

USUAL = {
    "vs": ("vs", "ts", "time", "timestamp", "datetime", "start", "start_time", "event_time", "at", "date"),
    "ve": ("ve", "end", "end_time", "until"),
    "ve_new": ("ve_new",),
    "cti": ("cti",),
    "types": ("type", "types", "kind", "event", "event_type", "eventtype"),
}
"""Common column names, the most likely first."""


def guesses(schema: Mapping[str, pl.DataType], given: Mapping[str, str]) -> dict[str, str]:
    """Columns for the settings of a source that are not given."""
    taken = [value for setting, value in given.items() if setting not in ("unit", "format")]
    free = {column: kind for column, kind in schema.items() if column not in taken}
    found = {"vs": given.get("vs") or start(free, given)}
    times = {column: kind for column, kind in free.items() if is_time(kind, given)}
    same = [c for c, kind in times.items() if kind.is_temporal() == schema[found["vs"]].is_temporal()]
    names = [c for c, kind in free.items() if isinstance(kind, pl.String | pl.Categorical | pl.Enum)]
    candidates = {"ve": same, "ve_new": same, "cti": same, "types": names}
    for setting, columns in candidates.items():
        column = usual(setting, (c for c in columns if c not in found.values()))
        if column is not None and not (setting == "ve" and "duration" in given):
            found[setting] = column
    return {setting: column for setting, column in found.items() if setting not in given}


def start(free: Mapping[str, pl.DataType], given: Mapping[str, str]) -> str:
    """A time column with a common name, or the first timestamp column."""
    candidates = [column for column, kind in free.items() if is_time(kind, given)]
    column = usual("vs", candidates) or next((c for c in candidates if free[c].is_temporal()), None)
    if column is None:
        raise QueryError(
            f"\\load: no column looks like the time of an event (columns: {', '.join(free)}); choose one of "
            'timestamps, whole numbers, or text with its format: \\load NAME FILE vs=COLUMN [format="%m/%d/%Y %H:%M"]'
        )
    return column


def usual(setting: str, columns: Iterable[str]) -> str | None:
    by_name = {column.lower(): column for column in columns}
    return next((by_name[name] for name in USUAL[setting] if name in by_name), None)


def is_time(kind: pl.DataType, given: Mapping[str, str]) -> bool:
    """Whether a column can hold times, given the settings about how they are written."""
    if "format" in given:
        return isinstance(kind, pl.String | pl.Categorical | pl.Enum)
    return kind.is_integer() or (isinstance(kind, pl.Datetime | pl.Date) and "unit" not in given)
