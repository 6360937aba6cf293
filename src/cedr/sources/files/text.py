"""Reads one CSV or JSON lines file in blocks of whole lines, which Arrow converts to the source's types.

When Arrow rejects a block, the block is halved until the bad lines are alone. So the good lines around them are read by
the same rules as in a good file, and a good file is read at full speed.
"""

import csv
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO

import polars as pl
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json
from polars.exceptions import PolarsError

from cedr.plan.schema import first_line
from cedr.sources.event_time import time_columns
from cedr.sources.files import clock
from cedr.sources.files.columns import Expected, ExpectedColumns, check_present, fitted
from cedr.sources.files.settings import Files
from cedr.sources.files.unreadable import BadLine, ProblemError
from cedr.sources.row_times import unread_time

BLOCK = 8 << 20
LONGEST_RECORD = 8 * BLOCK
FIRST_LINES = 100
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NULL_AS_OBJECT = re.compile(rb"(?:\A|})\s*null")
"""Where Arrow could find a `null` instead of an object: at the beginning it crashes the process, later it is a row of
missing values. A match inside of a string only costs time."""


class TextFileReader:
    """Reads one file."""

    def __init__(self, path: str, settings: Files, columns: ExpectedColumns | None) -> None:
        self.path, self.columns = path, columns
        self.is_csv = settings.format == "csv"
        tabs = path.lower().removesuffix(".gz").endswith(".tsv")
        self.separator = settings.separator or ("\t" if tabs else ",")
        self.null_values = list(settings.null_values)
        self.names = None if settings.columns is None else list(settings.columns)
        self.expected: Expected = {}
        self.types: dict[str, pa.DataType] = {}
        if self.names or not self.is_csv:
            self._expect(self.names)

    def _expect(self, names: Sequence[str] | None) -> None:
        """`names` are the columns of the file; in JSON each line has its own."""
        self.expected = self.columns.of(names) if self.columns else {}
        self.types = {name: arrow_type(kind, self.is_csv) for name, kind in self.expected.items()}

    def pieces(self) -> Iterator[pl.DataFrame | BadLine]:
        """Frames and bad lines in the order of the file."""
        line = 1
        with open(self.path, "rb") as file:
            for block in self._blocks(self._bytes(file)):
                if isinstance(block, BadLine):
                    yield BadLine(line, block.text, block.why)
                    return
                rest = block if self.names or not self.is_csv else self._after_header(block)
                line += block.count(b"\n") - rest.count(b"\n")
                yield from self._read(rest, line)
                line += rest.count(b"\n")

    def _bytes(self, file: BinaryIO) -> Iterator[bytes]:
        return inflated(file) if self.path.lower().endswith(".gz") else iter(lambda: file.read(BLOCK), b"")

    def _blocks(self, chunks: Iterator[bytes]) -> Iterator[bytes | BadLine]:
        """Whole records. When the data ends early, the incomplete record is returned as a bad line."""
        rest, problem, first = b"", None, True
        while True:
            try:
                chunk = next(chunks, None)
            except ProblemError as e:
                chunk, problem = None, e
            if chunk is None:
                break
            rest += chunk
            if first and len(rest) >= len(BYTE_ORDER_MARK):
                rest, first = rest.removeprefix(BYTE_ORDER_MARK), False
            if end := self._last_end(rest):
                yield rest[:end]
                rest = rest[end:]
        if problem:
            whole, _, cut = rest.rpartition(b"\n")
            if whole:
                yield whole + b"\n"
            yield BadLine(0, cut, problem.what)
        elif rest:
            yield rest

    def _last_end(self, block: bytes) -> int:
        """The end of the last whole record: after a line break that is not inside of quotes."""
        end = block.rfind(b"\n") + 1
        if self.is_csv and block.count(b'"', 0, end) % 2 and len(block) < LONGEST_RECORD:
            records = self._records(block[:end])
            return end - len(records[-1])
        return end

    def _records(self, block: bytes) -> list[bytes]:
        """The lines of a block; a value with line breaks keeps its lines together."""
        lines = io.BytesIO(block).readlines()
        if not self.is_csv or b'"' not in block:
            return lines
        reader = csv.reader((line.decode("latin-1") for line in lines), delimiter=self.separator)
        found, start = [], 0
        try:
            for _ in reader:
                found.append(b"".join(lines[start : reader.line_num]))
                start = reader.line_num
        except csv.Error:  # the csv module cannot read it: fall back to single lines
            found += lines[start:]
        return found

    def _after_header(self, block: bytes) -> bytes:
        """The block without the header line, which sets the names of the columns."""
        lines, header = io.BytesIO(block), b""
        while not header.strip() or header.count(b'"') % 2:
            if not (line := lines.readline()):
                break
            header += line
        try:
            self.names = next(csv.reader(io.StringIO(header.decode().strip("\r\n")), delimiter=self.separator), [])
        except (UnicodeDecodeError, csv.Error) as e:
            raise ProblemError(f": the header line cannot be read ({first_line(e)})") from None
        if self.names:
            self._expect(self.names)
            check_present(self.names, self.expected)
            if twice := [name for name in self.expected if self.names.count(name) > 1]:
                raise ProblemError(f": there are several columns {twice[0]!r}")
        return lines.read()

    def _read(self, block: bytes, line: int) -> Iterator[pl.DataFrame | BadLine]:
        if not block.strip():
            return
        try:
            yield self._parsed(block)
        except (pa.ArrowException, PolarsError, ProblemError) as e:
            records = self._records(block)
            if len(records) == 1:
                yield BadLine(line, block, self._why(e, block))
                return
            first, second = b"".join(records[: len(records) // 2]), b"".join(records[len(records) // 2 :])
            yield from self._read(first, line)
            yield from self._read(second, line + first.count(b"\n"))

    def _parsed(self, block: bytes) -> pl.DataFrame:
        table = self._csv(block) if self.is_csv else self._json(block)
        table.validate(full=True)  # JSON may contain bytes that are not UTF-8
        frame = fitted(pl.DataFrame(table), self.expected)
        source = self.columns.source if self.columns else None
        if source and source.format and (problem := unread_time(frame, source)):
            raise ProblemError(problem)
        return frame

    def _csv(self, block: bytes) -> pa.Table:
        return arrow_csv.read_csv(
            pa.BufferReader(block),
            arrow_csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=self.names),
            arrow_csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=self.types,
                include_columns=list(self.types),
                null_values=self.null_values,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                timestamp_parsers=[arrow_csv.ISO8601],
            ),
        )

    def _json(self, block: bytes, types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
        if NULL_AS_OBJECT.search(block) and not self._is_object(block):
            raise ProblemError("a line should be an object, such as {...}")
        wanted = pa.schema(list((types or self.types).items()))
        written = pa.schema([(field.name, as_written(field.type)) for field in wanted])
        table = arrow_json.read_json(
            pa.BufferReader(block),
            arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            arrow_json.ParseOptions(explicit_schema=written, unexpected_field_behavior="ignore"),
        )
        return table if written == wanted else pa.table([read_times(table, field) for field in wanted], wanted)

    def _is_object(self, block: bytes) -> bool:
        """Whether a block is one object. Blocks of several lines are False; they are split then."""
        try:
            return isinstance(json.loads(block), dict)
        except (ValueError, RecursionError):
            return False

    def _culprit(self, record: bytes) -> str | None:
        """The column that makes a line of JSON unreadable."""
        for name, kind in self.types.items():
            try:
                fitted(pl.DataFrame(self._json(record, {name: kind})), {name: self.expected[name]})
            except (pa.ArrowException, PolarsError, ProblemError):
                return name
        return None

    def _why(self, error: Exception, record: bytes) -> str:
        """The reason in plain terms, where that is clearer than Arrow's message."""
        message = str(error).removeprefix(": ")
        if found := re.match(r"In CSV column #(\d+):.*?conversion error to (.*?): (.*)", message, re.DOTALL):
            assert self.names is not None
            name = self.names[int(found[1])]
            problem = found[3].partition(". If these timestamps")[0]  # about Arrow's functions
            return f"column {name!r} should be {found[2]}, but: {problem}{self._hint(name)}"
        if found := re.search(r"Expected (\d+) columns, got (\d+)", message):
            return f"expected {found[1]} values, found {found[2]}"
        if found := re.search(r"Column\(/(.*?)\) changed from (\w+) to (\w+)", message):
            return (
                f"column {found[1]!r} should be {articled(found[2])} and is {articled(found[3])}{self._hint(found[1])}"
            )
        if found := re.search(r"Column\(\) changed from object to (\w+)", message):
            return f"a line should be an object, such as {{...}}, and is {articled(found[1])}"
        if found := re.match(r"Failed to convert JSON to (.*?), couldn't parse:(.*)", message):
            return f"column {self._culprit(record)!r} should be {found[1]} and is {found[2]}"
        if "Invalid UTF8" in message:
            return "this is not UTF-8"
        return re.sub(r" in row \d+$", "", message)

    def _hint(self, column: str) -> str:
        """Advice when the clock is unknown."""
        if self.columns is None or self.columns.written is not None or column not in time_columns(self.columns.source):
            return ""
        return (
            "; times are written as 2024-01-31T08:00 or as whole numbers; for others declare the format of the source: "
            'format = "%m/%d/%Y %H:%M"'
        )


def inflated(file: BinaryIO) -> Iterator[bytes]:
    """The content of gzip members, up to where they end early."""
    unzip, begun = zlib.decompressobj(wbits=31), False
    try:
        while compressed := file.read(BLOCK):
            while compressed:
                begun = True
                yield unzip.decompress(compressed)
                compressed = unzip.unused_data if unzip.eof else b""
                if unzip.eof:
                    unzip, begun = zlib.decompressobj(wbits=31), bool(compressed)
    except zlib.error as e:
        raise ProblemError(f"the gzip data is damaged ({e})") from None
    if begun and not unzip.eof:
        raise ProblemError("the gzip data ends early")


def arrow_type(kind: pl.DataType | None, is_csv: bool) -> pa.DataType:
    """The Arrow type to read, as close to the type as text allows. Columns without a type are durations or counts."""
    match kind:
        case None | pl.Duration():
            return pa.int64()
        case pl.String() | pl.Categorical() | pl.Enum():
            return pa.large_string()
        case pl.Date() if not is_csv:
            return pa.timestamp("us")
        case pl.Datetime():
            return pa.timestamp(kind.time_unit, kind.time_zone)
        case pl.List():
            return pa.list_(arrow_type(inner_type(kind.inner), is_csv))
        case pl.Struct():
            return pa.struct([(field.name, arrow_type(inner_type(field.dtype), is_csv)) for field in kind.fields])
    return pl.Series([], dtype=kind).to_arrow().type


def as_written(kind: pa.DataType) -> pa.DataType:
    """A type with texts for times. Arrow's JSON reader takes times with an offset and times without for each other."""
    if pa.types.is_timestamp(kind):
        return pa.large_string()
    if pa.types.is_list(kind):
        return pa.list_(as_written(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, as_written(field.type)) for field in kind])
    return kind


def read_times(table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    """A column with its texts as times, by the rules for CSV."""
    column = table.column(field.name)
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as e:
        found = re.search(
            r"string: '(.*)' as a scalar of type [^:]*?(?:: (expected \w+ zone offset)|$)", str(e), re.DOTALL
        )
        if found is None:
            raise
        why = f", but: {found[2]} in {found[1]!r}" if found[2] else f" and is {found[1]}"
        raise ProblemError(f"column {field.name!r} should be {field.type}{why}") from None


def inner_type(kind: object) -> pl.DataType:
    made = kind() if isinstance(kind, type) else kind
    assert isinstance(made, pl.DataType)
    return made


def clock_in(path: str, settings: Files, column: str, otherwise: str | None = None) -> str | None:
    """How times are written, from the first lines that have one. `otherwise` is used if `column` does not exist."""
    text = TextFileReader(path, settings, None)
    with open(path, "rb") as file:
        try:
            block = next((block for block in text._blocks(text._bytes(file)) if isinstance(block, bytes)), b"")
            if text.is_csv and not text.names:
                block = text._after_header(block)
        except ProblemError:
            return None
    lines = text._records(block)[:FIRST_LINES]
    for values in csv_values(text, lines) if text.is_csv else json_values(lines):
        if (found := clock.of_value(values.get(column, values.get(otherwise or column)))) is not None:
            return found
    return None


def csv_values(text: TextFileReader, lines: Sequence[bytes]) -> Iterator[dict[str, object]]:
    with suppress(csv.Error):  # errors are reported when the lines are read
        for values in csv.reader((line.decode(errors="replace") for line in lines), delimiter=text.separator):
            if text.names and len(values) == len(text.names):
                yield {n: None if v in text.null_values else v for n, v in zip(text.names, values, strict=True)}


def json_values(lines: Sequence[bytes]) -> Iterator[dict[str, object]]:
    for line in lines:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def articled(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
