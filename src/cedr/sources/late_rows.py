"""Late rows in the user's terms: messages with the user's times, and one warning for a run that had some.

Operators only know chronons, so their messages contain numbers. The user's time type is known where late rows are
returned; there the numbers in the messages are converted.
"""

import warnings
from collections.abc import Mapping

import polars as pl

from cedr.sources.user_times import FARTHEST, TimeType
from cedr.temporal.duration import show_duration
from cedr.temporal.errors import CedrError, LateWarning, StreamError

NUMBER = r"(-?\d+)"
BEGIN, END = "\x02", "\x03"
TIMES = (
    (rf"\[{NUMBER}, (-?\d+|∞)\)", f"[{BEGIN}${{1}}{END}, ${{2}})"),
    (rf"(\[{BEGIN}-?\d+{END}|\[-∞), {NUMBER}\)", f"${{1}}, {BEGIN}${{2}}{END})"),
    (rf"\) to {NUMBER}: ", f") to {BEGIN}${{1}}{END}: "),
    (rf"but an earlier row has {NUMBER}", f"but an earlier row has {BEGIN}${{1}}{END}"),
    (rf"(its sync time|lies before|but cti| before|more than \d+ after) {NUMBER}", f"${{1}} {BEGIN}${{2}}{END}"),
)
"""The positions of times in messages of `cedr.operators.late` and in the promises passed to it."""


def with_user_times(messages: pl.Series, kind: TimeType) -> pl.Series:
    """Messages of late rows, with timestamps instead of microseconds."""
    if not isinstance(kind, pl.Datetime) or not len(messages):
        return messages
    marked = messages
    for pattern, replacement in TIMES:
        marked = marked.str.replace_all(pattern, replacement)
    found = marked.str.extract_all(f"{BEGIN}-?\\d+{END}").explode().drop_nulls().unique(maintain_order=True)
    if found.is_empty():
        return messages
    numbers = found.str.strip_chars(BEGIN + END).cast(pl.Int64, strict=False)
    inside = numbers.is_between(-FARTHEST, FARTHEST).fill_null(False)
    times = numbers.set(~inside, None).cast(kind).cast(pl.String).str.replace(".000000", "", literal=True)
    texts = times.fill_null(found.str.strip_chars(BEGIN + END))
    shown = marked.str.replace_many(found.to_list(), texts.to_list())
    lengths = shown.str.extract(r"more than (\d+) (?:after|before) ", 1).drop_nulls().unique()
    for length in lengths:
        shown = shown.str.replace_all(f"more than {length} ", f"more than {show_duration(int(length))} ", literal=True)
    return shown


def in_user_times(error: CedrError, kind: TimeType) -> CedrError:
    """The same error; if it is about an element that broke a promise, with timestamps in its text."""
    if isinstance(error, StreamError):
        error.args = tuple(with_user_times(pl.Series([str(error)]), kind))
    return error


BEHIND = {"below_cti", "below_punctuation", "forgotten"}
"""Reasons of rows that arrived too late; other rows are invalid."""


def summary(counts: Mapping[str, int]) -> str:
    """`1 row arrived behind the watermark`, or how many rows could not be used, by reason."""
    total = sum(counts.values())
    rows = f"{total:,} {'row' if total == 1 else 'rows'}"
    if set(counts) <= BEHIND:
        return f"{rows} arrived behind the watermark"
    why = ", ".join(f"{reason}: {n:,}" for reason, n in sorted(counts.items(), key=lambda item: -item[1]))
    return f"{rows} could not be used ({why})"


def warn_of_late(counts: Mapping[str, int], stacklevel: int) -> None:
    """Warn once for a run; `counts` is by reason."""
    if total := sum(counts.values()):
        are, them = ("is", "it") if total == 1 else ("are", "them")
        warnings.warn(
            f"{summary(counts)} and {are} not part of the result; late() returns {them} with the reasons, and "
            'late="raise" in cedr.source raises an error instead',
            LateWarning,
            stacklevel=stacklevel + 1,
        )


def counted(late: pl.DataFrame) -> dict[str, int]:
    """The number of late rows for each reason."""
    if not late.height:
        return {}
    column = "_reason" if "_reason" in late.columns else "reason"
    return dict(late[column].value_counts(sort=True).iter_rows())
