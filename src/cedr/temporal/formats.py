"""Times in text form, in a format given by the user: `"%m/%d/%Y %H:%M"`."""

from datetime import datetime

import polars as pl
from polars.exceptions import PolarsError

SAMPLE = datetime(2003, 11, 28, 17, 46, 39)


def has_offset(format: str) -> bool:
    """Whether the texts contain their offset from UTC."""
    return "%z" in format or "%:z" in format or "%#z" in format


def time_of_format(format: str) -> pl.Datetime:
    return pl.Datetime("us", "UTC" if has_offset(format) else None)


def parsed(texts: pl.Series, format: str) -> pl.Series:
    """The texts as timestamps; a text that does not match the format becomes missing."""
    stripped = texts.cast(pl.String).str.strip_chars()
    if any(f"%{directive}" in format for directive in "HIkTRrXsc+"):
        found = stripped.str.to_datetime(format, time_unit="us", strict=False, exact=True)
    else:
        found = stripped.str.to_date(format, strict=False, exact=True).cast(pl.Datetime("us"))
    return found.cast(time_of_format(format))


def format_problem(format: str) -> str:
    """Why texts cannot be parsed with this format; empty if they can."""
    example = 'write for example "%m/%d/%Y %H:%M"'
    if "%" not in format:
        return f"names no part of a time; {example}"
    try:
        sample = pl.Series([SAMPLE]).dt.replace_time_zone("UTC" if has_offset(format) else None)
        found = parsed(sample.dt.strftime(format), format)
    except PolarsError as e:
        return f"is not a format of times ({str(e).partition(chr(10))[0]}); {example}"
    if found.null_count() or found.dt.date()[0] != SAMPLE.date():
        return f"does not determine the day, or cannot be parsed; {example}"
    return ""
