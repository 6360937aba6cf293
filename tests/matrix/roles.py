"""What a column can be used for. A role builds the query, and works out by other means what its answer must be."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import stdev
from typing import Any, Protocol

import polars as pl
from matrix.compare import comparable

import cedr
from cedr.api import source_of_keys
from cedr.stream import Stream

END = 1000
"""All rows live until then, so that there is one snapshot from the start of the last row on."""

Rows = pl.DataFrame


class Declare(Protocol):
    """Declares a source by name and options, with the columns `id` and `v`, or those of `keys` in place of `v`."""

    keys: tuple[str, ...]

    def __call__(self, name: str, **options: Any) -> Stream: ...


@dataclass(frozen=True)
class Role:
    """`expected` is the payload of the answer, in any order; `data` the rows of the source `s`, or of each source.

    With `whole` it is the answer while more rows may come, and `whole` the one when no more come.
    """

    build: Callable[[Declare], Stream]
    data: Callable[[pl.Series], Any]
    expected: Callable[[pl.Series], Rows]
    ordered: bool = False
    whole: Callable[[pl.Series], Rows] | None = None

    @property
    def close(self) -> bool:
        return self.whole is None

    def tables(self, values: pl.Series) -> dict[str, Rows]:
        data = self.data(values)
        return data if isinstance(data, dict) else {"s": data}


INSTANTS = {"vs": "ts", "delay": 0}
CORRECTED = {**INSTANTS, "ve": "end", "ve_new": "new"}


def feed(kind: pl.DataType, name: str, **options: Any) -> Stream:
    return source_of_keys(name, {"id": pl.Int64, "v": kind}, **{**INSTANTS, **options})


def source(kind: pl.DataType, name: str = "s", **options: Any) -> Stream:
    return feed(kind, name, **{**CORRECTED, **options})


@dataclass(frozen=True)
class Local:
    """Each source has one column of the type."""

    kind: pl.DataType
    keys: tuple[str, ...] = ("v",)

    def __call__(self, name: str, **options: Any) -> Stream:
        return feed(self.kind, name, **options)


def corrected(declare: Declare, name: str = "s") -> Stream:
    return declare(name, **CORRECTED)


def rows(values: pl.Series) -> Rows:
    """Rows that live together from 0 on. The last value comes once more and is taken back again."""
    again = pl.concat([values, values[-1:], values[-1:]])
    n = len(values)
    ids = [*range(n), n, n]
    return pl.DataFrame({"id": ids, "v": again}).with_columns(
        ts=pl.lit(0), end=pl.lit(END), new=pl.Series([*[None] * (n + 1), 0], dtype=pl.Int64)
    )


def kept(values: pl.Series) -> Rows:
    return pl.DataFrame({"id": range(len(values)), "v": values}, schema_overrides={"id": pl.Int64})


def in_turn(values: pl.Series) -> Rows:
    """Rows that come one after the other."""
    starts = pl.Series(range(len(values)), dtype=pl.Int64)
    return pl.DataFrame({"id": starts, "v": values, "ts": starts})


# --- payloads and keys -----------------------------------------------------------------------------------------------


def counts(rows: Rows) -> Rows:
    return rows.group_by("v").agg(n=pl.len().cast(pl.Int64))


def joined(values: pl.Series) -> Rows:
    other = kept(values).rename({"id": "id_right"})
    return kept(values).join(other, on="v").select("id", "v", "id_right")


def unmatched(values: pl.Series) -> Rows:
    there = [repr(value) for value in comparable(values[:2].drop_nulls())]
    return kept(values).filter([repr(value) not in there for value in comparable(values)])


KEYS = {
    "payload": Role(corrected, rows, kept),
    "group key": Role(
        lambda declare: corrected(declare).group_by("v").agg(n=cedr.count()),
        rows,
        lambda values: counts(kept(values)),
    ),
    "distinct": Role(
        lambda declare: corrected(declare).select("v").distinct(),
        rows,
        lambda values: kept(values).select("v").unique(),
    ),
    "join key": Role(
        lambda declare: corrected(declare).join(corrected(declare, "t"), on="v"),
        lambda values: {"s": rows(values), "t": rows(values)},
        joined,
    ),
    "anti join key": Role(
        lambda declare: corrected(declare).join(corrected(declare, "t"), on="v", how="anti"),
        lambda values: {"s": rows(values), "t": rows(values[:2])},
        unmatched,
    ),
}


# --- patterns --------------------------------------------------------------------------------------------------------


def pairs(values: pl.Series, equal: bool = True) -> Rows:
    """Two events, the first before the second; a missing value is neither equal nor unequal."""
    left, right = kept(values), kept(values).rename({"id": "y", "v": "w"})
    condition = (pl.col("v") == pl.col("w")) if equal else (pl.col("v") != pl.col("w"))
    found = left.join(right, how="cross").filter(pl.col("id") < pl.col("y"), condition)
    return found.select(pl.col("id").alias("x"), "y")


def pattern(where: str) -> Callable[[Declare], Stream]:
    text = f"EVENT P WHEN SEQUENCE(A x, B y, 100) WHERE {where} OUTPUT x.id AS x, y.id AS y"
    return lambda declare: cedr.query(text, A=declare("A"), B=declare("B"))


def both(values: pl.Series) -> dict[str, Rows]:
    return {"A": in_turn(values), "B": in_turn(values)}


def taken_back(values: pl.Series) -> dict[str, Rows]:
    """Events that differ in the value only, of which some are taken back."""
    there = pl.DataFrame({"v": values}).select(id=pl.lit(0), v="v", ts=pl.lit(0), new=pl.lit(None, pl.Int64))
    gone = there[::3].with_columns(new=pl.lit(0, pl.Int64))
    return {"A": pl.concat([there, gone]).with_columns(end=END), "B": in_turn(values)[1:2]}


def left(values: pl.Series) -> Rows:
    return pl.DataFrame({"v": values.filter(pl.Series(i % 3 != 0 for i in range(len(values))))})


def matched(declare: Declare) -> Stream:
    text = "EVENT P WHEN SEQUENCE(A x, B y, 100) OUTPUT x.v AS v LATENCY eager"
    return cedr.query(text, A=corrected(declare, "A").select("v"), B=declare("B"))


PATTERNS = {
    "pattern payload": Role(matched, taken_back, left),
    "x.v = y.v": Role(pattern("x.v = y.v"), both, pairs),
    "CorrelationKey EQUAL": Role(pattern("CorrelationKey(v, EQUAL)"), both, pairs),
    "CorrelationKey UNIQUE": Role(
        pattern("CorrelationKey(v, UNIQUE)"), both, lambda values: pairs(values, equal=False)
    ),
}


# --- aggregates ------------------------------------------------------------------------------------------------------


def aggregate(made: Callable[[str], Any], expected: Callable[[pl.Series], Any], data=rows) -> Role:
    """`expected` of the values that are not missing: a column with one value, or the value."""
    return Role(
        lambda declare: corrected(declare).agg(r=made("v")),
        data,
        lambda values: pl.DataFrame({"r": expected(values.drop_nulls())}),
    )


def nth(values: pl.Series, n: int) -> pl.Series:
    """The n-th from small to large; NaN is larger than any number. Of no values, a missing one."""
    return values.sort()[n : n + 1] if len(values) else values.extend_constant(None, 1)


def finite(values: pl.Series) -> pl.Series:
    return values.filter(values.is_finite() | values.is_null()) if values.dtype.is_float() else values


def exact(values: pl.Series) -> list[Fraction]:
    counted = values.to_physical() if values.dtype == pl.Duration else finite(values)
    return [Fraction(value) for value in counted.drop_nulls()]


def mean(values: pl.Series) -> list[Any] | pl.Series:
    found = exact(values)
    if values.dtype == pl.Duration:  # to the nearest whole unit, from a half to the even one
        return pl.Series([round(sum(found) / len(found))], dtype=pl.Int64).cast(values.dtype)
    return [float(sum(found) / len(found)) if found else None]


def deviation(values: pl.Series) -> list[float | None]:
    found = exact(values)
    return [float(stdev(found)) if len(found) > 1 else None]


def fitting(values: pl.Series) -> pl.Series:
    """Values whose sum fits their type."""
    if values.dtype in (pl.Int64, pl.UInt64):
        return values.filter(values.cast(pl.Float64).abs() < 2.0**60)
    return finite(values)


def total(values: pl.Series) -> pl.Series:
    found = exact(fitting(values))
    if values.dtype.is_float():
        return pl.Series([math.fsum(finite(values))])
    if values.dtype == pl.Duration:
        return pl.Series([int(sum(found))]).cast(values.dtype)
    return pl.Series([sum(found) if found else None], dtype=pl.Object)


def fitting_rows(values: pl.Series) -> Rows:
    return rows(fitting(values))


def finite_rows(values: pl.Series) -> Rows:
    return rows(finite(values))


def most_frequent(values: pl.Series) -> pl.Series:
    """The smallest of the values that occur most often."""
    counted = values.to_frame("v").group_by("v").len().sort("len", "v", descending=[True, False])
    return counted["v"][:1] if len(values) else nth(values, 0)


AGGREGATES: dict[str, Role] = {
    "count": aggregate(cedr.count, lambda v: [len(v)]),
    "sum": aggregate(cedr.sum, total, fitting_rows),
    "avg": aggregate(cedr.avg, mean, finite_rows),
    "stddev": aggregate(cedr.stddev, deviation, finite_rows),
    "min": aggregate(cedr.min, lambda v: nth(v, 0)),
    "max": aggregate(cedr.max, lambda v: nth(v, len(v) - 1)),
    "first": aggregate(cedr.first, lambda v: nth(v, 0)),
    "last": aggregate(cedr.last, lambda v: nth(v, len(v) - 1)),
    "median": aggregate(cedr.median, lambda v: nth(v, (len(v) - 1) // 2)),
    "count_distinct": aggregate(cedr.count_distinct, lambda v: [v.n_unique()]),
    "mode": aggregate(cedr.mode, most_frequent),
    "aggregate()": aggregate(
        lambda c: cedr.aggregate(c, function=lambda frame: frame["v"].drop_nulls().n_unique(), dtype=int),
        lambda v: [v.n_unique()],
    ),
}


# --- order -----------------------------------------------------------------------------------------------------------

ORDER = {
    "sort": Role(
        lambda declare: corrected(declare).sort("v", "id"),
        rows,
        lambda values: kept(values).sort("v", "id", nulls_last=True),
        ordered=True,
    ),
    "top_k": Role(
        lambda declare: corrected(declare).top_k(3, by=["v", "id"]).select("id"),
        rows,
        lambda values: kept(values).sort("v", "id", descending=True, nulls_last=True)[:3].select("id"),
    ),
}


# --- progress --------------------------------------------------------------------------------------------------------


def done(values: pl.Series) -> pl.Series:
    """Every third value and those equal to it."""
    return values[::3]


def of_done(values: pl.Series, missing: bool = True) -> Rows:
    """How many of each value that is done; `missing`: also of missing values."""
    there = [repr(value) for value in comparable(done(values)) if missing or value is not None]
    rows = kept(values).filter([repr(value) in there for value in comparable(values)])
    return counts(rows)


def punctuated(values: pl.Series) -> Rows:
    """The rows, and then for some of the values that no more come. A missing value in a punctuation means any value."""
    closed = done(values).drop_nulls() if values.dtype != pl.Null else values
    marks = pl.DataFrame({"v": closed}).select(id=None, v="v", ts=None, end=None, no_more=True)
    together = kept(values).with_columns(ts=0, end=END, no_more=False)
    return pl.concat([together, marks], how="vertical_relaxed")


def risen(values: pl.Series) -> Rows:
    """The rows within the first window, and then for some of the values one long after it."""
    later = pl.DataFrame({"v": done(values)}).select(id=pl.lit(0, pl.Int64), v="v", ts=pl.lit(900, pl.Int64))
    return pl.concat([in_turn(values), later])


PROGRESS = {
    "punctuation": Role(
        lambda declare: (
            declare("s", ve="end", delay=None, punctuation="no_more", promises="v")
            .group_by(*declare.keys)
            .agg(n=cedr.count())
            .with_consistency("strong")
        ),
        punctuated,
        lambda values: of_done(values, missing=values.dtype == pl.Null),
        whole=lambda values: counts(kept(values)),
    ),
    "progress_by": Role(
        lambda declare: (
            declare("s", progress_by="v")
            .tumbling(100)
            .group_by(*declare.keys)
            .agg(n=cedr.count())
            .with_consistency("strong")
        ),
        risen,
        of_done,
        whole=lambda values: pl.concat([counts(kept(values)), counts(kept(done(values)))]),
    ),
}


# --- automata --------------------------------------------------------------------------------------------------------


def rising(values: pl.Series) -> Rows:
    """Neighbours of which the second is larger."""
    follows = kept(values).with_columns(end=pl.col("id") + 1, w=pl.col("v").shift(-1))
    found = follows.filter(pl.col("w") > pl.col("v"))
    return found.select(pl.col("id").alias("begin"), "end", m="v")


AUTOMATA = {
    "register": Role(
        lambda declare: cedr.regex(
            "A B",
            declare("s"),
            A=cedr.step(pl.lit(True), m=pl.col("v")),
            B=pl.col("v") > pl.col("m"),
            registers={"m": 0},
            window=50,
        ),
        in_turn,
        rising,
    ),
}

ROLES: dict[str, Role] = {**KEYS, **PATTERNS, **AGGREGATES, **ORDER, **PROGRESS, **AUTOMATA}
