"""A column in files: written as other programs write it, read as a source of a query."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
from matrix.roles import feed

from cedr.job.rows import Rows
from cedr.plan.nodes.source import Source
from cedr.sources.files import Files
from cedr.sources.files.columns import check_source
from cedr.temporal import CedrError

FORMATS = ("csv", "json", "parquet")


def rejected(format_: str, kind: pl.DataType) -> str | None:
    """Why a source with such a column cannot read files of the format."""
    try:
        check_source(declared(kind), Files("folder", format_))
    except CedrError as e:
        return str(e)
    return None


def declared(kind: pl.DataType) -> Source:
    plan = feed(kind, "s").plan
    assert isinstance(plan, Source)
    return plan


def written(rows: pl.DataFrame, folder: Path, format_: str) -> None:
    path = folder / f"rows.{format_}"
    if format_ == "parquet":
        rows.write_parquet(path)
    elif format_ == "csv":
        rows.with_columns(as_texts(rows, (pl.Datetime,))).write_csv(path, quote_style="non_numeric")
    else:
        texts = as_texts(rows, (pl.Datetime, pl.Date, pl.Time, pl.Enum, pl.Categorical))
        path.write_text("".join(as_line(row) + "\n" for row in rows.with_columns(texts).to_dicts()))


def as_texts(rows: pl.DataFrame, kinds: tuple[type[pl.DataType], ...]) -> list[pl.Expr]:
    """Columns of these types as texts; times are as in ISO 8601."""
    return [as_text(name, kind) for name, kind in rows.schema.items() if isinstance(kind, kinds)]


def as_text(name: str, kind: pl.DataType) -> pl.Expr:
    if isinstance(kind, pl.Datetime):
        return pl.col(name).dt.strftime("%Y-%m-%dT%H:%M:%S%.f" + ("%:z" if kind.time_zone else ""))
    return pl.col(name).cast(pl.String)


def as_line(row: dict[str, Any]) -> str:
    return json.dumps(row, default=lambda value: str(value) if isinstance(value, Decimal) else value)


def read(folder: Path, format_: str, kind: pl.DataType) -> pl.DataFrame:
    return pl.concat(Rows(declared(kind), Files(str(folder), format_)).batches())
