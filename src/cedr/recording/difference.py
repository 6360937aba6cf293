"""Are two changelogs logically equivalent: do they have the same canonical history?"""

from dataclasses import dataclass

import polars as pl

from cedr.columnar.chunk import VS
from cedr.columnar.tally import COUNT, VE, in_order, summed
from cedr.plan.schema import Schema, show_schema
from cedr.recording.changelog import Recorded, check_times
from cedr.recording.history import canonical_tuples
from cedr.sinks.readable import renamed
from cedr.sources.user_times import as_user_times
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF

OF = "_of"


@dataclass(frozen=True)
class HistoryDifference:
    """`only` are the tuples that one has more often, with the columns `of` (which one) and `copies` (how many
    more); sorted by time. A name that the payload has already gets an underscore."""

    one: str
    two: str
    only: pl.DataFrame
    payload: Schema

    def __bool__(self) -> bool:
        return bool(self.only.height)

    def __str__(self) -> str:
        if not self:
            return "logically equivalent"
        ve, of, copies = (f"_{name}" if name in self.payload else name for name in ("ve", "of", "copies"))
        first = self.only.row(0, named=True)
        number, place = first.pop(copies), first.pop(of)
        shown = ", ".join(f"{name}={'∞' if name == ve and value is None else value}" for name, value in first.items())
        often = f" {number} times more" if number > 1 else ""
        others = self.only.height - 1
        more = f"; {others:,} more {'tuple differs' if others == 1 else 'tuples differ'}" if others else ""
        return f"different: only {place} has{often} ({shown}){more}"


def difference(one: Recorded, two: Recorded, to: int = INF) -> HistoryDifference:
    columns = list(one.schema)
    if set(columns) != set(two.schema):
        schemas = f"{show_schema(one.schema)} and {show_schema(two.schema)}"
        raise QueryError(f"{one.place} and {two.place} have different columns and cannot be compared: {schemas}")
    check_times(one, two)
    sides = [counted(one, to, columns, 1), counted(two, to, columns, -1)]
    try:
        changes = pl.concat(sides, how="vertical_relaxed")
    except pl.exceptions.PolarsError:
        schemas = f"{show_schema(one.schema)} and {show_schema(two.schema)}"
        raise QueryError(f"{one.place} and {two.place} have columns of different types: {schemas}") from None
    found = in_order(summed([changes]).select(VS, VE, *columns, COUNT))
    of = pl.when(pl.col(COUNT) > 0).then(pl.lit(one.place)).otherwise(pl.lit(two.place))
    timed = as_user_times(found, (VS, VE), one.time_type).with_columns(of.alias(OF), pl.col(COUNT).abs())
    shown = timed.select(VS, VE, *columns, OF, COUNT)
    only = renamed(shown, {VS: "vs", VE: "ve", OF: "of", COUNT: "copies"}, one.schema)
    return HistoryDifference(one.place, two.place, only, one.schema)


def counted(side: Recorded, to: int, columns: list[str], sign: int) -> pl.DataFrame:
    return canonical_tuples(side, to).table().select(VS, VE, *columns, pl.lit(sign, pl.Int64).alias(COUNT))
