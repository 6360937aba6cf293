"""The user's settings for files: where they are, their format, and what to do with unreadable data."""

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
WRITE_FORMAT = f"declare it: format={', '.join(map(repr, get_args(Format)))}"


@dataclass(frozen=True)
class Files:
    """The files of one source. Made by `files`, which checks the arguments.

    Files that cedr itself wrote are `sealed`: their checksums are verified. The text is advice if one is wrong.
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
    """The files in a folder and its subfolders, those that match a glob such as `"data/*.csv"`, or one file.

    A file is read once, whole, and must not change afterwards: write it under a name that starts with `.` or `_`, or
    that ends in `.tmp`, and rename it when it is complete. Such names are not read.

    format        "parquet", "csv" or "json" (one object per line); by default from the suffixes. CSV and JSON may be
                  compressed: `.csv.gz`
    max_files     maximum number of files in one micro-batch
    columns       the names of the columns of CSV files that have no header line
    separator     between the values of CSV; by default a comma, in `.tsv` a tab
    null_values   unquoted texts that represent missing values in CSV
    on_bad        what to do with a file or line that cannot be read. "raise": the query stops with advice.
                  "late": bad lines go to the late stream and the rest is used; a bad Parquet file goes there as a whole
    order         read files that exist at the same time by name or by modification time
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
    chosen = format or format_of(place)
    for name, option in (("columns", columns), ("separator", separator)):
        if option is not None and chosen in ("parquet", "json"):
            raise QueryError(f"{what}: {name}={option!r} applies only to CSV, not to {chosen!r}")
    return Files(
        os.path.abspath(os.path.expanduser(place)),
        chosen,
        max_files,
        None if columns is None else tuple(columns),
        separator,
        tuple(null_values),
        on_bad,
        order,
    )


def format_of(path: str) -> Format | None:
    """The format of a suffix."""
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
        raise QueryError(f"{what}: there is no file yet whose suffix determines the format; {WRITE_FORMAT}")
    found: dict[Format | None, str] = {format_of(path): path for path in reversed(paths)}
    if None in found:
        raise QueryError(f"{what}: the suffix of {found[None]!r} is not a known format; {WRITE_FORMAT}, or use a glob")
    if len(found) > 1:
        formats = ", ".join(f"{form} ({path!r})" for form, path in sorted(found.items(), key=str))
        raise QueryError(f"{what}: there are files of several formats: {formats}; use a glob such as '*.csv'")
    (chosen,) = found
    return Files(**{**vars(settings), "format": chosen})
