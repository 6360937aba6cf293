"""What a user says about files: where they are, what is in them, and what to do with what cannot be read."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from cedr.temporal.errors import QueryError

Format = Literal["parquet", "csv", "json"]
OnBad = Literal["raise", "late"]
Order = Literal["name", "modified"]

SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
WRITE_FORMAT = f"say which it is: format={', '.join(map(repr, get_args(Format)))}"


@dataclass(frozen=True)
class Files:
    """The files of one source. Made by `files`, which checks the arguments.

    Files that cedr itself wrote are `sealed`: their checksums are verified. The text is what to do when one is wrong.
    """

    path: str
    format: Format | None = None
    max_files: int | None = None
    columns: tuple[str, ...] | None = None
    separator: str | None = None
    null_values: tuple[str, ...] = ("",)
    on_bad: OnBad = "raise"
    order: Order = "name"
    sealed: str | None = None

    @property
    def is_glob(self) -> bool:
        return bool(re.search(r"[*?\[]", self.path)) and not os.path.exists(self.path)


def files(
    path: str | os.PathLike[str],
    format: Format | None = None,
    *,
    max_files: int | None = None,
    columns: Sequence[str] | None = None,
    separator: str | None = None,
    null_values: Sequence[str] = ("",),
    on_bad: OnBad = "raise",
    order: Order = "name",
) -> Files:
    """The files in a folder and the folders in it, those a glob such as `"data/*.csv"` matches, or one file.

    A file is read once, whole, and must not change afterwards: write it under a name that starts with `.` or `_`, or
    that ends in `.tmp`, and rename it when it is complete. Such names are not read.

    format        "parquet", "csv" or "json" (one object per line); by default what the suffixes say. CSV and JSON may
                  be compressed: `.csv.gz`
    max_files     at most so many files in one micro-batch
    columns       the names of the columns of CSV files that have no header line
    separator     between the values of CSV; by default a comma, in `.tsv` a tab
    null_values   texts that mean no value in CSV, when they are not quoted
    on_bad        what to do with a file or line that cannot be read. "raise": the query stops and says what to do.
                  "late": bad lines go to the late stream and the rest is used; a bad Parquet file goes there as a whole
    order         files that are there at the same time are read by name or by time of modification
    """
    what = f"files({os.fspath(path)!r})"
    place = os.fspath(path).removeprefix("file://")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", place):
        raise QueryError(f"{what}: only paths of mounted file systems can be read; for others use spark.readStream")
    for name, value, allowed in (("format", format, Format), ("on_bad", on_bad, OnBad), ("order", order, Order)):
        if value is not None and value not in get_args(allowed):
            raise QueryError(f"{what}: {name}={value!r} is not one of {', '.join(map(repr, get_args(allowed)))}")
    if max_files is not None and max_files < 1:
        raise QueryError(f"{what}: max_files={max_files} would never read anything; it must be 1 or more")
    if separator is not None and len(separator) != 1:
        raise QueryError(f"{what}: separator={separator!r} must be one character")
    known = format or format_of(place)
    for name, option in (("columns", columns), ("separator", separator)):
        if option is not None and known in ("parquet", "json"):
            raise QueryError(f"{what}: {name}={option!r} is for CSV, but the format is {known!r}")
    return Files(
        os.path.abspath(os.path.expanduser(place)),
        known,
        max_files,
        None if columns is None else tuple(columns),
        separator,
        tuple(null_values),
        on_bad,
        order,
    )


def format_of(path: str) -> Format | None:
    """What the suffix says."""
    stem, suffix = os.path.splitext(path.lower())
    if suffix == ".gz":
        inner = format_of(stem)
        return None if inner == "parquet" else inner
    return SUFFIXES.get(suffix)


def with_format(settings: Files, paths: Sequence[str]) -> Files:
    """The settings with the format that all these files have."""
    if settings.format is not None:
        return settings
    what = f"files({settings.path!r})"
    if not paths:
        raise QueryError(f"{what}: there is no file yet whose suffix tells the format; {WRITE_FORMAT}")
    found: dict[Format | None, str] = {format_of(path): path for path in reversed(paths)}
    if None in found:
        raise QueryError(f"{what}: the suffix of {found[None]!r} tells no format; {WRITE_FORMAT}, or use a glob")
    if len(found) > 1:
        shown = ", ".join(f"{form} ({path!r})" for form, path in sorted(found.items(), key=str))
        raise QueryError(f"{what}: there are files of several formats: {shown}; use a glob such as '*.csv'")
    (known,) = found
    return Files(**{**vars(settings), "format": known})
