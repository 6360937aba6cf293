"""Are two changelogs logically equivalent: do they leave the same canonical history, however they told it?"""

from dataclasses import dataclass

import polars as pl

from cedr.columnar.chunk import VS
from cedr.plan.schema import show_schema
from cedr.recording.changelog import Recorded
from cedr.recording.history import canonical_tuples
from cedr.runtime.tally import COUNT, VE, in_order, summed
from cedr.runtime.user_times import as_user_times
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF


@dataclass(frozen=True)
class Difference:
    """`only` are the tuples that one has more often, with `of` saying which; sorted by time."""

    one: str
    two: str
    only: pl.DataFrame

    def __bool__(self) -> bool:
        return bool(self.only.height)

    def __str__(self) -> str:
        if not self:
            return "logically equivalent"
        first = self.only.row(0, named=True)
        number = first.pop("copies")
        place = first.pop("of")
        shown = ", ".join(f"{name}={'∞' if name == 've' and value is None else value}" for name, value in first.items())
        often = f" {number} times more" if number > 1 else ""
        others = self.only.height - 1
        more = f"; {others:,} more {'tuple differs' if others == 1 else 'tuples differ'}" if others else ""
        return f"different: only {place} has{often} ({shown}){more}"


def difference(one: Recorded, two: Recorded, to: int = INF) -> Difference:
    columns = list(one.schema)
    if set(columns) != set(two.schema):
        said = f"{show_schema(one.schema)} and {show_schema(two.schema)}"
        raise QueryError(f"{one.place} and {two.place} have other columns and cannot be compared: {said}")
    if isinstance(one.time_type, pl.Datetime) != isinstance(two.time_type, pl.Datetime):
        raise QueryError(f"{one.place} and {two.place} tell time differently: {one.time_type} and {two.time_type}")
    sides = [counted(one, to, columns, 1), counted(two, to, columns, -1)]
    try:
        told = pl.concat(sides, how="vertical_relaxed")
    except pl.exceptions.PolarsError:
        said = f"{show_schema(one.schema)} and {show_schema(two.schema)}"
        raise QueryError(f"{one.place} and {two.place} have columns of other types: {said}") from None
    found = in_order(summed([told]).select(VS, VE, *columns, COUNT))
    shown = as_user_times(found, (VS, VE), one.time_type).rename({VS: "vs", VE: "ve"})
    of = pl.when(pl.col(COUNT) > 0).then(pl.lit(one.place)).otherwise(pl.lit(two.place))
    return Difference(
        one.place, two.place, shown.with_columns(of.alias("of"), pl.col(COUNT).abs().alias("copies")).drop(COUNT)
    )


def counted(side: Recorded, to: int, columns: list[str], sign: int) -> pl.DataFrame:
    return canonical_tuples(side, to).table().select(VS, VE, *columns, pl.lit(sign, pl.Int64).alias(COUNT))
