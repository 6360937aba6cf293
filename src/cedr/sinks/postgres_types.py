"""Values in PostgreSQL: the type of a column, how values are written into it as text, and how they are read back.

Numbers, texts, Booleans, times, decimals and bytes have their own types, lists of them become arrays. Deeper nesting
is written as JSON. PostgreSQL has microseconds and no NUL characters in texts; values that would lose something are
rejected.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl

from cedr.sinks.base import SinkError
from cedr.temporal.errors import QueryError

PLAIN: dict[type[pl.DataType], str] = {
    pl.Int8: "smallint",
    pl.Int16: "smallint",
    pl.Int32: "integer",
    pl.Int64: "bigint",
    pl.Int128: "numeric(39, 0)",
    pl.UInt8: "smallint",
    pl.UInt16: "integer",
    pl.UInt32: "bigint",
    pl.UInt64: "numeric(20, 0)",
    pl.Float32: "real",
    pl.Float64: "double precision",
    pl.Boolean: "boolean",
    pl.String: "text",
    pl.Categorical: "text",
    pl.Enum: "text",
    pl.Binary: "bytea",
    pl.Date: "date",
    pl.Time: "time",
    pl.Duration: "interval",
    pl.Null: "text",
}
WIDE = (pl.UInt64, pl.Int128)


def type_of(name: str, kind: pl.DataType) -> str:
    """PostgreSQL's type for the values of a column."""
    if isinstance(kind, pl.Datetime):
        return "timestamp with time zone" if kind.time_zone else "timestamp"
    if isinstance(kind, pl.Decimal):
        return f"numeric({kind.precision}, {kind.scale})"
    if is_flat_list(kind):
        return f"{type_of(name, kind.inner)}[]"  # type: ignore[attr-defined]
    if kind.is_nested():
        if beyond_json(kind):
            raise QueryError(
                f"column {name!r} is of type {kind}, which PostgreSQL stores as JSON, and JSON has neither bytes nor "
                "durations; use texts or numbers instead: bin.encode('hex'), dt.total_microseconds()"
            )
        return "json"
    if found := PLAIN.get(type(kind)):
        return found
    raise QueryError(f"column {name!r} is of type {kind}, for which PostgreSQL has no type; cast it in the query")


def beyond_json(kind: Any) -> bool:
    """Whether a type, or one inside it, has values that JSON cannot represent."""
    if isinstance(kind, pl.Struct):
        return any(beyond_json(field.dtype) for field in kind.fields)
    return beyond_json(kind.inner) if isinstance(kind, pl.List | pl.Array) else kind in (pl.Binary, pl.Duration)


def is_flat_list(kind: pl.DataType) -> bool:
    return isinstance(kind, pl.List | pl.Array) and not kind.inner.is_nested()


# --- writing ---------------------------------------------------------------------------------------------------------


def as_csv(rows: pl.DataFrame) -> bytes:
    """Rows for COPY: texts in quotes, nulls as nothing at all."""
    texts = rows.select(checked(as_text(rows[name])) for name in rows.columns)
    return texts.write_csv(include_header=False, quote_style="non_numeric", null_value="").encode()


def checked(texts: pl.Series) -> pl.Series:
    if texts.dtype == pl.String and texts.str.contains("\0", literal=True).any():
        raise SinkError(
            f"column {texts.name!r} has a text with a NUL character, which PostgreSQL cannot store; "
            f'take it out in the query: pl.col("{texts.name}").str.replace_all("\\0", "", literal=True)'
        )
    return texts


def as_text(values: pl.Series) -> pl.Series:
    """Values as PostgreSQL reads them; plain numbers stay unchanged."""
    kind = values.dtype
    if kind in (pl.Datetime, pl.Duration, pl.Time):
        return times_as_text(values)
    if kind == pl.Date:
        return with_year(values, "-%m-%d", "")
    if kind == pl.Binary:
        return values.to_frame().select(pl.lit("\\x") + pl.col(values.name).bin.encode("hex")).to_series()
    if is_flat_list(kind):
        return arrays(values)
    if kind.is_nested():
        return as_json(values)
    if kind == pl.Boolean or kind.is_float() or (kind.is_integer() and kind not in WIDE):
        return values
    return values.cast(pl.String)


def whole_microseconds(times: pl.Series) -> pl.Series:
    """Times of day count nanoseconds in polars."""
    if (times.cast(pl.Int64) % 1000 != 0).any():
        raise SinkError(
            f"column {times.name!r} has times of day finer than a microsecond, which PostgreSQL cannot store; "
            "round them in the query"
        )
    return times


def times_as_text(values: pl.Series) -> pl.Series:
    kind = values.dtype
    if isinstance(kind, pl.Duration):
        micros = values.dt.cast_time_unit("us").cast(pl.Int64).cast(pl.String)
        return micros.to_frame().select(pl.col(values.name) + " microseconds").to_series()
    if kind == pl.Time:
        return whole_microseconds(values).dt.strftime("%H:%M:%S%.6f")
    if kind.time_zone:  # type: ignore[attr-defined]
        return with_year(values.dt.convert_time_zone("UTC"), "-%m-%d %H:%M:%S%.6f", "+00")
    return with_year(values, "-%m-%d %H:%M:%S%.6f", "")


def with_year(values: pl.Series, rest: str, zone: str) -> pl.Series:
    """PostgreSQL counts years before the first one backwards, and those of five digits have no sign."""
    year, name = pl.col(values.name).dt.year(), values.name
    digits = pl.when(year > 0).then(year).otherwise(1 - year).cast(pl.String).str.zfill(4)
    era = pl.when(year > 0).then(pl.lit("")).otherwise(pl.lit(" BC"))
    return values.to_frame().select((digits + pl.col(name).dt.strftime(rest) + zone + era).alias(name)).to_series()


def arrays(values: pl.Series) -> pl.Series:
    """`{"a","b",NULL}`: every value in quotes, with backslashes before quotes and backslashes."""
    lists = values.cast(pl.List(values.dtype.inner))  # type: ignore[attr-defined]
    full = lists.list.len().fill_null(0) > 0
    inner = checked(as_text(lists.filter(full).explode())).cast(pl.String)
    escaped = inner.str.replace_all("\\", "\\\\", literal=True).str.replace_all('"', '\\"', literal=True)
    flat = pl.DataFrame({"text": escaped, "list": repeated_places(lists.filter(full))})
    quoted = pl.concat_str(pl.lit('"'), "text", pl.lit('"')).fill_null("NULL")
    joined = flat.group_by("list", maintain_order=True).agg(quoted.str.join(",").alias("text"))["text"]
    whole = joined.to_frame().select("{" + pl.col("text") + "}").to_series()
    empty = pl.Series([None if missing else "{}" for missing in lists.is_null()], dtype=pl.String)
    return empty.scatter(full.arg_true(), whole).alias(values.name)


def repeated_places(lists: pl.Series) -> pl.Series:
    """For each value of the lists the index of its list."""
    places = pl.DataFrame({"place": pl.int_range(len(lists), eager=True), "n": lists.list.len()})
    return places.select(pl.col("place").repeat_by("n").explode())["place"]


def as_json(values: pl.Series) -> pl.Series:
    frame = values.to_frame("value")
    texts = frame.select(pl.struct("value").struct.json_encode().alias(values.name)).to_series()
    if not from_json(texts, values.dtype).eq_missing(values).all():
        raise SinkError(
            f"column {values.name!r} of type {values.dtype} has values that JSON cannot represent, such as NaN inside "
            "a struct; use a separate column for each field"
        )
    return texts.set(values.is_null(), None)


# --- reading ---------------------------------------------------------------------------------------------------------


def selected(column: str, kind: pl.DataType) -> str:
    """What to select: times as numbers, because Python's own end with the year 9999; JSON as text."""
    if isinstance(kind, pl.Datetime | pl.Duration):
        return f"(extract(epoch FROM {column}) * 1000000)::bigint"
    if kind == pl.Date:
        return f"{column} - date '1970-01-01'"
    return f"{column}::text" if type_of(column, kind) == "json" else column


def as_series(name: str, values: Sequence[Any], kind: pl.DataType) -> pl.Series:
    """The inverse of `selected`."""
    if isinstance(kind, pl.Datetime | pl.Duration):
        in_micros = type(kind)("us", kind.time_zone) if isinstance(kind, pl.Datetime) else pl.Duration("us")
        return pl.Series(name, values, dtype=pl.Int64).cast(in_micros).dt.cast_time_unit(kind.time_unit)
    if kind == pl.Date:
        return pl.Series(name, values, dtype=pl.Int32).cast(pl.Date)
    if type_of(name, kind) == "json":
        return from_json(pl.Series(name, values, dtype=pl.String), kind)
    if kind in WIDE:
        values = [None if value is None else int(value) for value in values]
    elif is_flat_list(kind) and kind.inner in WIDE:  # type: ignore[attr-defined]
        values = [None if l is None else [None if v is None else int(v) for v in l] for l in values]  # noqa: E741
    return pl.Series(name, values, dtype=kind)


def from_json(texts: pl.Series, kind: pl.DataType) -> pl.Series:
    decoded = texts.str.json_decode(pl.Struct({"value": kind}))
    return decoded.struct.field("value").alias(texts.name)
