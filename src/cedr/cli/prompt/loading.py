r"""Files as streams for the prompt: `\load machines reports.csv vs=ts types=kind`.

Settings that are not given are guessed, and the guesses are shown. The order of the rows is the order of arrival.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PanicException, PolarsError

from cedr.api import source_of_keys
from cedr.cli.prompt.guessing import USUAL, guesses, is_time
from cedr.plan.schema import Schema, check_columns, first_line, show_schema
from cedr.stream import Stream
from cedr.temporal.errors import QueryError

SETTINGS = (*USUAL, "unit", "format", "duration", "delay")
TIMES = ("vs", "ve", "ve_new", "cti")
SHOWN_TYPES, MANY_TYPES = 20, 1_000
LOOKS_LIKE_A_TIME = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}|$)"


@dataclass(frozen=True)
class Loaded:
    stream: Stream
    rows: pl.DataFrame
    about: str
    """A description, including what was guessed."""


def load(name: str, path: Path, given: Mapping[str, str]) -> Loaded:
    """A file as a stream of this name."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise QueryError(f"\\load: {path} has an unsupported format; supported: {', '.join(READERS)}")
    try:
        rows = reader(path)
        texts = RAW_READERS.get(path.suffix.lower(), reader)(path) if "format" in given else rows
    except FileNotFoundError:
        raise QueryError(f"\\load: there is no file {path}") from None
    except (OSError, PolarsError, PanicException) as e:
        raise QueryError(f"\\load: {path} cannot be read: {first_line(e)}") from None
    return as_stream(name, rows, given, texts)


def read_json_lines(path: Path) -> pl.DataFrame:
    """JSON has no timestamps; a column of text that looks like a timestamp in every row becomes one."""
    rows = pl.read_ndjson(path)
    texts = [column for column, kind in rows.schema.items() if kind == pl.String]
    times = [column for column in texts if rows[column].str.contains(LOOKS_LIKE_A_TIME).all(ignore_nulls=False)]
    return rows.with_columns(pl.col(column).str.to_datetime() for column in times)


READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".csv": partial(pl.read_csv, try_parse_dates=True),
    ".tsv": partial(pl.read_csv, try_parse_dates=True, separator="\t"),
    ".parquet": pl.read_parquet,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json_lines,
}


RAW_READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".csv": partial(pl.read_csv, infer_schema=False),
    ".tsv": partial(pl.read_csv, infer_schema=False, separator="\t"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), pl.read_ndjson),
}
"""For times in a format that the user gives: polars must not guess another one."""


def as_stream(name: str, rows: pl.DataFrame, given: Mapping[str, str], texts: pl.DataFrame | None = None) -> Loaded:
    """A table as a stream of this name; `given` are settings of `cedr.source`. Times with a format are taken
    from `texts`."""
    texts = rows if texts is None else texts
    check(given, texts)
    guessed = guesses(texts.schema, given)
    settings: dict[str, Any] = {**guessed, **given}
    if "format" in given:
        rows = rows.with_columns(texts[settings[setting]] for setting in TIMES if setting in settings)
    rows = with_types(rows, settings.get("types"))
    times = [settings[setting] for setting in (*TIMES, "duration") if setting in settings]
    schema = {column: kind for column, kind in rows.schema.items() if column not in times}
    stream = source_of_keys(name, schema, **settings)
    return Loaded(stream, rows, about(name, rows, schema, settings, guessed))


def check(given: Mapping[str, str], rows: pl.DataFrame) -> None:
    for setting, value in given.items():
        if setting not in SETTINGS:
            raise QueryError(f"\\load: there is no setting {setting!r}; the settings are {', '.join(SETTINGS)}")
        if setting in USUAL:
            check_columns([value], rows.schema, f"\\load {setting}={value}")
        if setting in TIMES and not is_time(rows.schema[value], given):
            raise QueryError(
                f"\\load {setting}={value}: the column contains {rows.schema[value]}, such as "
                f"{rows[value].drop_nulls().first()!r}; {expected_times(given)}"
            )


def expected_times(given: Mapping[str, str]) -> str:
    if "unit" in given:
        return f"unit={given['unit']} is for whole numbers"
    if "format" in given:
        return f"format={given['format']!r} is for text"
    return (
        "times are timestamps, such as 2024-03-01 10:00:00, or whole numbers; declare the format of others: "
        'format="%m/%d/%Y %H:%M"'
    )


def with_types(rows: pl.DataFrame, column: str | None) -> pl.DataFrame:
    """Event types as an Enum, so that an unknown type in a query is an error."""
    if column is None or rows.schema[column] != pl.String or rows[column].n_unique() > MANY_TYPES:
        return rows
    names = rows[column].drop_nulls().unique(maintain_order=True)
    return rows.with_columns(pl.col(column).cast(pl.Enum(names)))


def about(name: str, rows: pl.DataFrame, schema: Schema, settings: dict[str, Any], guessed: Mapping[str, str]) -> str:
    shown = [f"{s}={value}{' (guessed)' if s in guessed else ''}" for s, value in settings.items()]
    types = settings.get("types")
    attributes = {c: kind for c, kind in schema.items() if c != types}
    lines = [
        f"{name}: {rows.height:,} rows, in the order of arrival; {', '.join(shown)}",
        f"  attributes: {show_schema(attributes) or 'none'}",
    ]
    if types is not None:
        events = rows.filter(pl.col(settings["ve_new"]).is_null()) if "ve_new" in settings else rows
        counts = events[types].drop_nulls().value_counts().sort("count", types, descending=[True, False])
        types_shown = ", ".join(f"{kind} ({n:,})" for kind, n in counts.head(SHOWN_TYPES).iter_rows())
        more = f" and {counts.height - SHOWN_TYPES:,} more" if counts.height > SHOWN_TYPES else ""
        lines.append(f"  event types: {types_shown}{more}")
    if "ve" not in settings and "duration" not in settings:
        lines.append("  an event lasts one instant, because neither ve nor duration is set")
    return "\n".join(lines)
