"""Failing cases as small files, which the tests run again: the plan, and the rows as they were delivered."""

import json
from dataclasses import asdict, replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from random_plans.case import Case
from random_plans.tables import INF, PAYLOAD, TIME_TYPES, E, S, Shape, Table, as_chronons

FOLDER = Path(__file__).parents[2] / "tests" / "differential" / "kept"


def save(case: Case, path: Path, note: str) -> None:
    tables = {name: table.delivered.to_dict(as_series=False) for name, table in case.tables.items()}
    content = {
        "note": note,
        "seed": case.seed,
        "shape": asdict(case.shape),
        "slicing": case.slicing,
        "settings": case.settings,
        "plan": case.plan,
        "tables": tables,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1, default=plain, ensure_ascii=False)
    path.write_text(text + "\n")


def plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{value!r} cannot be written")


def load(path: Path) -> Case:
    content = json.loads(path.read_text())
    shape = Shape(**{**content["shape"], "columns": tuple(content["shape"]["columns"])})
    tables = {name: table(columns, shape) for name, columns in content["tables"].items()}
    return Case(content["seed"], shape, tables, content["plan"], content["slicing"], content["settings"])


def table(columns: dict[str, list[Any]], shape: Shape) -> Table:
    kinds = {name: PAYLOAD.get(name, TIME_TYPES[shape.time]) for name in columns}
    delivered = pl.DataFrame([column(name, columns[name], kind) for name, kind in kinds.items()])
    return Table(delivered, settled(delivered, shape))


def column(name: str, values: list[Any], kind: pl.DataType) -> pl.Series:
    if isinstance(kind, pl.Datetime):
        return pl.Series(name, [None if v is None else datetime.fromisoformat(v) for v in values], kind)
    if kind == pl.Date:
        return pl.Series(name, [None if v is None else date.fromisoformat(v) for v in values], kind)
    if kind.is_decimal():
        return pl.Series(name, [None if v is None else Decimal(v) for v in values], kind)
    return pl.Series(name, values, kind)


def settled(delivered: pl.DataFrame, shape: Shape) -> pl.DataFrame:
    """The canonical table: a row that corrects takes one tuple with the old end away, and adds one with the new."""
    kind = TIME_TYPES[shape.time]
    rows = delivered.with_columns(as_chronons(pl.col("vs"), kind).alias("vs"))
    end = as_chronons(pl.col("ve"), kind).fill_null(INF) if "ve" in rows.columns else pl.col("vs") + 1
    new = as_chronons(pl.col("ve_new"), kind) if "ve_new" in rows.columns else pl.lit(None, pl.Int64)
    rows = rows.with_columns(end.alias("ve"), new.alias("ve_new"))
    names = [c for c in shape.columns if c in rows.columns]
    corrects = pl.col("ve_new").is_not_null()
    first = rows.select(
        pl.col("vs").alias(S), pl.col("ve").alias(E), pl.when(corrects).then(-1).otherwise(1).alias("n"), *names
    )
    then = rows.filter(corrects).select(pl.col("vs").alias(S), pl.col("ve_new").alias(E), pl.lit(1).alias("n"), *names)
    counts = pl.concat([first, then]).group_by(S, E, *names, maintain_order=True).agg(pl.col("n").sum())
    left = counts.filter((pl.col(S) < pl.col(E)) & (pl.col("n") > 0))
    return left.select(pl.exclude("n").repeat_by("n").explode()) if left.height else left.drop("n")


def with_rows(case: Case, tables: dict[str, pl.DataFrame]) -> Case:
    """The same case over other rows."""
    made = {name: Table(rows, settled(rows, case.shape)) for name, rows in tables.items()}
    return replace(case, tables=made, wanted=None)
