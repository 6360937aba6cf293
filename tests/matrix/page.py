"""Writes docs/types.md from the matrix: `.venv/bin/python tests/matrix/page.py`."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))

from collections.abc import Callable, Mapping  # noqa: E402

import polars as pl  # noqa: E402
from matrix import cells, files, stores  # noqa: E402
from matrix.roles import ROLES  # noqa: E402
from matrix.values import COLUMNS  # noqa: E402

from cedr.sinks.spark_types import spark_schema  # noqa: E402

PAGE = ROOT / "docs" / "types.md"
Reason = Callable[[pl.DataType], str | None]
"""Why a column of a type is rejected; None if it works."""

HEAD = """\
# Types

<!-- Written by tests/matrix/page.py from the code that tests it. Do not edit; run that file. -->

A column may have any type of polars. A type that works gives the same result as a plain polars program, in this process
and on Spark. A type that does not work is rejected when the query is built or started, with the reason and an
alternative. The tables below are generated from the tests of every cell.

**Equal values.** As keys, in `distinct` and in comparisons, `NaN` equals `NaN` and is larger than any number, and
`-0.0` equals `0.0`. In `group_by`, `distinct` and `cedr.Progress(by=...)` (`progress_by` below) missing values are one
group; in `join` and in patterns a missing value equals nothing, as in SQL. Times are compared with full precision.

**Two types.** The keys of a join, and of `CorrelationKey`, must have the same type. If they do not, the error shows the
cast to use. Comparisons such as `x.v = y.v` compare values, also of different widths, scales and units of time.
Times with a zone are never compared with times without one, or with another.

**Nanoseconds.** Event times count microseconds. Columns with nanoseconds are stored and compared exactly.
"""


def reason_of_role(role: str) -> Reason:
    def reason(kind: pl.DataType) -> str | None:
        built = cells.build(ROLES[role], kind)
        return built if isinstance(built, str) else None

    return reason


def reason_of_file(format_: str) -> Reason:
    return lambda kind: files.rejected(format_, kind)


def reason_of_sink(sink: str) -> Reason:
    return lambda kind: stores.rejected(stores.SINKS[sink](), kind)


def page() -> str:
    queries = {role: reason_of_role(role) for role in ROLES}
    sources = {format_: reason_of_file(format_) for format_ in files.FORMATS}
    sinks = {sink: reason_of_sink(sink) for sink in stores.SINKS}
    parts = [
        HEAD,
        section("In a query", "Every type works as", queries),
        section("In files", "Every type can be read from", sources),
        section("In sinks", "Every type can be kept by", sinks),
        "The changelog and the table of `batch` have the types of Spark:\n",
        spark_types(),
    ]
    return "\n".join(parts)


def section(title: str, all_work: str, reasons: Mapping[str, Reason]) -> str:
    """A table of what is rejected somewhere, with notes."""
    found = {name: [reason(values.dtype) for values in COLUMNS.values()] for name, reason in reasons.items()}
    plain = [f"`{name}`" for name, cells_ in found.items() if not any(cells_)]
    rest = {name: cells_ for name, cells_ in found.items() if any(cells_)}
    notes: dict[str, int] = {}
    kinds: dict[str, list[str]] = {}
    """Types by what their row shows."""
    for i, (kind, values) in enumerate(COLUMNS.items()):
        shown = [mark(cells_[i], values.dtype, notes) for cells_ in rest.values()]
        kinds.setdefault(" | ".join(shown), []).append(kind)
    rows = [f"| {', '.join(alike)} | {shown} |" for shown, alike in kinds.items()]
    lines = [f"## {title}", "", f"{all_work} {', '.join(plain)}.", ""]
    lines += [f"| | {' | '.join(f'`{name}`' for name in rest)} |", "|---" * (len(rest) + 1) + "|", *rows, ""]
    lines += [f"{number}. {note}" for note, number in notes.items()]
    return "\n".join(lines) + "\n"


def mark(reason: str | None, kind: pl.DataType, notes: dict[str, int]) -> str:
    if reason is None:
        return "yes"
    text = reason.replace(str(kind), "...").replace("files('folder')", "files(...)")
    for path in (str(Path("answers.duckdb").absolute()), str(Path("answers").absolute())):
        text = text.replace(path, Path(path).name)
    return f"no ({notes.setdefault(f'`{text}`', len(notes) + 1)})"


def spark_types() -> str:
    lines = ["| | in Spark |", "|---|---|"]
    kinds: dict[str, list[str]] = {}
    for name, values in COLUMNS.items():
        if stores.rejected(stores.SINKS["batch()"](), values.dtype) is None:
            kinds.setdefault(spark_schema({"v": values.dtype}).fields[0].dataType.simpleString(), []).append(name)
    lines += [f"| {', '.join(names)} | `{kind}` |" for kind, names in kinds.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
