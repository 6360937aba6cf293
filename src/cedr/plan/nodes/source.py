"""Where events come from, and which of a table's columns are its times."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import polars as pl

from cedr.plan.aspects import text
from cedr.plan.aspects.progress import (
    NodeContext,
)
from cedr.plan.aspects.promises import CTI, Schemes
from cedr.plan.aspects.properties import Properties
from cedr.plan.node import Columns, Node, Work
from cedr.plan.schema import Schema, show_schema
from cedr.temporal.time import INF

Unit = Literal["s", "ms", "us", "ns"]


@dataclass(frozen=True, eq=False)
class Source(Node):
    """A named input. `columns` are the payload; the time columns need not be among them.

    vs, ve, ve_new, cti   columns of a table that hold times, or expressions over its columns; `ve_new` is missing in
                          the rows that are inserts
    duration              the lifetime when there is no `ve`: chronons, or a column or expression of lengths of time
    ends                  no lifetime is without an end; a row that has none is late
    expressions           those of the times that are polars expressions, by their text
    unit                  what whole numbers count as times of the table: they are then timestamps
    format                how times that are text are written
    types, kind           the column that names each event's type, or the one type all events have
    insert_only           there are no adjusts
    ordered               no row has a smaller sync time than one before it
    delay                 the progress that may be derived: no row comes later than this after a higher one
    external              there may be external CTIs, whose counts must be checked before any row is dropped
    counts                the column that makes a row an external CTI: how many elements have sync times in [vs, ve)
    partition             the column that names the partition of the source a row comes from; each progresses by itself
    idle                  after this time without rows, in microseconds, a partition holds the others back no more
    progress_by           columns: `delay` holds for the rows of each of their values by itself, so each has its own
                          progress, reported as promises about it
    punctuation           the column that is true in rows that are punctuations: no more rows like this one, where a
                          missing value means any, before `vs` or, if that is missing, ever
    promises              the sets of columns that punctuations of this source are about
    max_ahead             a row that starts more than this after the wall-clock time, in microseconds, is late
    late                  what to do with a row that breaks a promise: collect it, or raise
    valid                 it is a valid stream already, as cedr wrote it: nothing is checked, and nothing kept for that
    """

    work = Work.OTHER

    name: str
    columns: tuple[tuple[str, Any], ...]
    vs: str | None = None
    ve: str | None = None
    ve_new: str | None = None
    cti: str | None = None
    duration: int | str = 1
    types: str | None = None
    kind: str | None = None
    insert_only: bool = False
    ordered: bool = False
    delay: int | None = None
    external: bool = field(default=False, kw_only=True)
    counts: str | None = field(default=None, kw_only=True)
    partition: str | None = field(default=None, kw_only=True)
    idle: int | None = field(default=None, kw_only=True)
    progress_by: tuple[str, ...] = field(default=(), kw_only=True)
    punctuation: str | None = field(default=None, kw_only=True)
    promises: tuple[tuple[str, ...], ...] = field(default=(), kw_only=True)
    max_ahead: int | None = field(default=None, kw_only=True)
    late: Literal["collect", "raise"] = field(default="collect", kw_only=True)
    ends: bool = field(default=False, kw_only=True)
    valid: bool = field(default=False, kw_only=True)
    expressions: tuple[tuple[str, pl.Expr], ...] = field(default=(), kw_only=True)
    unit: Unit | None = field(default=None, kw_only=True)
    format: str | None = field(default=None, kw_only=True)

    @cached_property
    def schema(self) -> Schema:
        return dict(self.columns)

    @property
    def reports_ctis(self) -> bool:
        """Whether it reports how far it has come as a whole. Elements report it themselves; a delay per key only does
        when silent keys are given up."""
        derived = self.delay is not None or self.ordered
        if self.vs is None or self.cti or self.external:
            return True
        return derived and (not self.progress_by or self.idle is not None)

    def reads(self, needed: Columns) -> list[Columns]:
        return []

    def describe(self) -> str:
        columns = {"vs": self.vs, "ve": self.ve, "ve_new": self.ve_new, "cti": self.cti}
        times = "".join(f", {name}={column}" for name, column in columns.items() if column)
        by = f", progress by {', '.join(self.progress_by)}" if self.progress_by else ""
        return f"Source {self.name} ({show_schema(self.schema)}){times}{by}{text.promises(self.promises)}"

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        return text.NO_STATE

    def derive_properties(self, *inputs: Properties) -> Properties:
        """Without a column of ends or lengths, in which one may be missing, all have the same length."""
        constant = self.vs is not None and self.ve is None and isinstance(self.duration, int) and self.duration != INF
        remember = INF if self.valid else None
        return Properties(
            ordered=self.ordered, insert_only=self.insert_only, finite=constant or self.ends, remember=remember
        )

    def progress_requirements(self, context: NodeContext) -> None:
        return None

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        per = tuple(sorted(self.progress_by))
        found = {per: False} if per else {}
        for columns in self.promises:
            names = tuple(sorted(columns))
            found[names] = names != per or self.punctuation is not None
        return {**found, CTI: False} if self.reports_ctis else found

    def partition_requirement(self) -> None:
        return None
