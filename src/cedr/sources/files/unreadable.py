"""What could not be read: raised as an error with advice, or recorded for the late stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from cedr.operators.late import LateStream
from cedr.plan.nodes.source import Source
from cedr.temporal.errors import QueryError

Trouble = Literal["content", "planning", "changed", "gone", "changed later"]

ADVICE: dict[Trouble, str] = {
    "content": (
        'To continue, repair the file in place and restart the query; or restart it with on_bad="late", which puts '
        "unreadable data into the late stream and uses the rest. Then the file may also be moved away."
    ),
    "planning": (
        "To continue, repair the file or move it away and restart the query; no batch has used it yet. With "
        'on_bad="late" the query records it in the late stream and continues.'
    ),
    "changed": (
        "A file must not change once it is visible. To continue, restore the old content and restart the query; or "
        'restart it with on_bad="late", which records the file in the late stream. Under a new name it is a new file.'
    ),
    "gone": (
        'To continue, restore the file and restart the query; or restart it with on_bad="late", which records the '
        "file in the late stream."
    ),
    "changed later": (
        "A file is read once, so the change would be lost. To continue, move the file away and restart the query, and "
        "write new rows to a new file."
    ),
}

SCHEMA = {"file": pl.String, "line": pl.Int64, "text": pl.String, "count": pl.Int64, "why": pl.String}
LONGEST_TEXT = 10_000


class BadFileError(QueryError):
    """A file that cannot be read."""

    def __init__(self, file: str, what: str, trouble: Trouble) -> None:
        self.file, self.trouble = file, trouble
        super().__init__(f"file {file!r}{what}. {ADVICE[trouble]}")


class ProblemError(Exception):
    """The problem of a whole file, as a text that follows its name."""

    def __init__(self, what: str, trouble: Trouble = "content") -> None:
        self.what, self.trouble = what, trouble
        super().__init__(what)


@dataclass(frozen=True)
class BadLine:
    line: int
    text: bytes
    why: str


@dataclass(frozen=True)
class Unreadable:
    """Lines of a file, or a file as a whole, as rows: file, line, text, number of rows if known, and the reason."""

    rows: pl.DataFrame
    trouble: Trouble

    @staticmethod
    def of_lines(file: str, lines: Sequence[BadLine]) -> "Unreadable":
        rows = [(file, bad.line, as_text(bad.text), 1, bad.why) for bad in lines]
        return Unreadable(pl.DataFrame(rows, SCHEMA, orient="row"), "content")

    @staticmethod
    def of_file(file: str, count: int | None, problem: ProblemError) -> "Unreadable":
        return Unreadable(
            pl.DataFrame([(file, None, None, count, problem.what)], SCHEMA, orient="row"), problem.trouble
        )

    def error(self) -> BadFileError:
        """The error about the first row."""
        row = self.rows.row(0, named=True)
        place = "" if row["line"] is None else f", line {row['line']}: "
        text = "" if row["text"] is None else f" in {row['text'][:200]!r}"
        return BadFileError(row["file"], f"{place}{row['why']}{text}", self.trouble)

    def late(self, source: Source) -> pl.DataFrame:
        """Rows of the late stream of a source: no times, no payload, a reason and a message."""
        columns = LateStream(source.schema).take()
        place = pl.when(pl.col("line").is_null()).then(pl.lit("")).otherwise(pl.format(", line {}: ", "line"))
        text = pl.when(pl.col("text").is_null()).then(pl.lit("")).otherwise(pl.format(" in {}", "text"))
        count = pl.when(pl.col("count").is_null() | pl.col("line").is_not_null()).then(pl.lit(""))
        rows = self.rows.select(
            pl.lit("unreadable").alias(columns.columns[-2]),
            pl.format(
                "file {}{}{}{}{}",
                "file",
                place,
                "why",
                text.fill_null(""),
                count.otherwise(pl.format(" ({} rows)", "count")),
            ).alias(columns.columns[-1]),
        )
        return pl.concat([columns, rows], how="diagonal").select(columns.columns)


def as_text(text: bytes) -> str:
    line = text.rstrip(b"\r\n").decode("utf-8", "backslashreplace")
    return line if len(line) <= LONGEST_TEXT else f"{line[:LONGEST_TEXT]}…"
