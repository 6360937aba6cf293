"""Many cells as one query, for a runtime on which every query takes seconds.

A source has a column of each type, and its column `cell` names the cell that a row is for. Most queries are the union
of those of all cells, and an answer has its values in columns of their types. Progress of single values does not pass a
union; there one query has all columns as keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import polars as pl
from matrix import cells
from matrix.roles import INSTANTS, ROLES
from matrix.values import COLUMNS

from cedr.api import source_of_keys
from cedr.sinks.spark_types import spark_type
from cedr.stream import Stream
from cedr.temporal import QueryError

Cell = tuple[str, str]
"""A role and a type."""

KINDS: dict[str, Any] = {name: values.dtype for name, values in COLUMNS.items()}


class Together:
    """All cells of some roles, without those that are rejected."""

    def __init__(self, *roles: str) -> None:
        self.cells = accepted(*roles)
        self.sources: dict[str, Stream] = {}
        self.tables: dict[str, list[pl.DataFrame]] = {}
        self.answers = {cell: ROLES[cell[0]].build(Shared(self, cell)) for cell in self.cells}
        self.columns = {
            f"{name}: {kind}": kind for answer in self.answers.values() for name, kind in answer.schema.items()
        }

    def rows(self) -> dict[str, pl.DataFrame]:
        return {place: stacked(frames) for place, frames in self.tables.items()}

    def query(self, in_spark: bool = False) -> Stream:
        """`in_spark`: values of types that Spark does not have are whole numbers in the answer."""
        first, *others = (self.shown(cell, in_spark) for cell in self.cells)
        return first.union(*others)

    def shown(self, cell: Cell, in_spark: bool) -> Stream:
        here = {f"{name}: {kind}": name for name, kind in self.answers[cell].schema.items()}
        columns = [
            (pl.col(here[place]) if place in here else pl.lit(None))
            .cast(spark_kind(kind) if in_spark else kind)
            .alias(place)
            for place, kind in self.columns.items()
        ]
        return self.answers[cell].select(pl.lit(label(cell)).alias("cell"), *columns)

    def answer(self, cell: Cell, rows: pl.DataFrame) -> pl.DataFrame:
        """The answer to one cell, among those to all."""
        schema = self.answers[cell].schema
        return of_cell(cell, rows).select(
            pl.col(f"{name}: {kind}").cast(kind).alias(name) for name, kind in schema.items()
        )


@dataclass
class Shared:
    """Declares sources for one cell; they are the same for all cells that use the same options."""

    together: Together
    cell: Cell
    keys: tuple[str, ...] = ("v",)

    def __call__(self, name: str, **options: Any) -> Stream:
        role, kind = self.cell
        place, here = f"{name} with {', '.join(sorted(options))}", self.together
        here.tables.setdefault(place, []).append(of_all(self.cell, ROLES[role].tables(COLUMNS[kind])[name]))
        if place not in here.sources:
            here.sources[place] = wide_source(place, KINDS, options)
        return here.sources[place].where(pl.col("cell") == label(self.cell)).select("id", v=kind)


class AsKeys:
    """All types of a role about the progress of single values."""

    def __init__(self, role: str) -> None:
        self.cells = accepted(role)
        self.role, self.kinds = ROLES[role], {kind: KINDS[kind] for _, kind in self.cells}
        self.all = self.role.build(KeyColumns(self.kinds))

    def rows(self) -> dict[str, pl.DataFrame]:
        tables = [of_all(cell, self.role.tables(COLUMNS[cell[1]])["s"]) for cell in self.cells]
        return {"s": pl.concat(tables, how="diagonal")}

    def query(self, in_spark: bool = False) -> Stream:
        columns = [pl.col(name).cast(spark_kind(kind)) for name, kind in self.kinds.items()] if in_spark else []
        return self.all.with_columns(*columns) if columns else self.all

    def answer(self, cell: Cell, rows: pl.DataFrame) -> pl.DataFrame:
        kind = cell[1]
        return of_cell(cell, rows).select(pl.col(kind).cast(KINDS[kind]).alias("v"), "n")


@dataclass
class KeyColumns:
    """Declares one source for all types; what is declared for `v` holds for the value in the column of the cell."""

    kinds: Mapping[str, Any]
    keys: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.keys = ("cell", *self.kinds)

    def __call__(self, name: str, **options: Any) -> Stream:
        if "progress_by" in options:
            options["progress_by"] = list(self.keys)
        if "promises" in options:
            options["promises"] = ["cell", *(["cell", kind] for kind in self.kinds)]
        return wide_source(name, self.kinds, options)


def wide_source(name: str, kinds: Mapping[str, Any], options: Mapping[str, Any]) -> Stream:
    return source_of_keys(name, {"cell": str, "id": pl.Int64, **kinds}, **{**INSTANTS, **options})


@cache
def accepted(*roles: str) -> list[Cell]:
    every = [(role, kind) for role in roles for kind in KINDS]
    return [(role, kind) for role, kind in every if isinstance(cells.build(ROLES[role], KINDS[kind]), Stream)]


def label(cell: Cell) -> str:
    return " of ".join(cell)


def of_cell(cell: Cell, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("cell") == label(cell))


def of_all(cell: Cell, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of a cell as rows of a source of all."""
    return rows.rename({"v": cell[1]}).with_columns(cell=pl.lit(label(cell)))


def stacked(tables: list[pl.DataFrame]) -> pl.DataFrame:
    """The rows of all cells, in the order of their times."""
    rows = pl.concat(tables, how="diagonal")
    missing = [pl.lit(None, kind).alias(name) for name, kind in KINDS.items() if name not in rows.columns]
    return rows.with_columns(missing).sort("ts", maintain_order=True)


def spark_kind(kind: pl.DataType) -> pl.DataType:
    """A type that Spark has, too."""
    try:
        spark_type(kind, "v")
    except QueryError:
        return pl.Int64()
    return kind
