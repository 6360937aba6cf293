"""The answer to a plan by definition: one function per operator, over canonical tables. Nothing of cedr is used.

A table has the columns `_s` and `_e`, the ends of the lifetime in chronons, and the payload.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from random_plans.expressions import predicate, value
from random_plans.intervals import (
    Clock,
    TooLargeError,
    gaps,
    levels,
    lifetimes,
    merged,
    numbered,
    overlaps,
    ranges,
    snapshots,
    without_missing,
)
from random_plans.matches import matches
from random_plans.tables import INF, E, S

Frame = pl.DataFrame
Node = Mapping[str, Any]
LIMIT = 60_000_000


def answer(plan: list[dict[str, Any]], sources: Mapping[str, Frame]) -> Frame:
    """The table that the last node yields."""
    found: list[Frame] = []
    for node in plan:
        found.append(evaluate(node, [found[i] for i in node.get("of", ())], sources))
    return found[-1]


def evaluate(node: Node, inputs: list[Frame], sources: Mapping[str, Frame], limit: int = LIMIT) -> Frame:
    if node["op"] == "source":
        return sources[node["name"]]
    return OPERATORS[node["op"]](node, *inputs, limit=limit)


def payload(frame: Frame) -> list[str]:
    return [c for c in frame.columns if c not in (S, E)]


def during(frame: Frame, rows: np.ndarray, start: np.ndarray, end: np.ndarray) -> Frame:
    """These rows, with other lifetimes."""
    return frame[rows].with_columns(pl.Series(S, start), pl.Series(E, end))


def lived(frame: Frame, start: pl.Expr, end: pl.Expr) -> Frame:
    return frame.with_columns(start.alias(S), end.alias(E))


def plus(time: pl.Expr, length: int) -> pl.Expr:
    return pl.when(time == INF).then(INF).otherwise(time + length)


def floor_to(time: pl.Expr, period: int, offset: int) -> pl.Expr:
    return (time - offset) // period * period + offset


# --- payloads and lifetimes ----------------------------------------------------------------------------------------


def where(node: Node, frame: Frame, limit: int) -> Frame:
    return frame.filter(predicate(node["p"]))


def project(node: Node, frame: Frame, limit: int) -> Frame:
    return frame.select(S, E, *(value(e).alias(name) for name, e in node["columns"]))


def sliding(node: Node, frame: Frame, limit: int) -> Frame:
    return lived(frame, pl.col(S), pl.col(S) + node["length"])


def moving(node: Node, frame: Frame, limit: int) -> Frame:
    return lived(frame, pl.col(S), pl.min_horizontal(pl.col(E), pl.col(S) + node["length"]))


def hopping(node: Node, frame: Frame, limit: int) -> Frame:
    start = floor_to(pl.col(S), node["hop"], node["offset"])
    return lived(frame, start, start + node["size"])


def inserts(node: Node, frame: Frame, limit: int) -> Frame:
    return lived(frame, pl.col(S), pl.lit(INF))


def deletes(node: Node, frame: Frame, limit: int) -> Frame:
    return lived(frame.filter(pl.col(E) != INF), pl.col(E), pl.lit(INF))


def shift(node: Node, frame: Frame, limit: int) -> Frame:
    return lived(frame, pl.col(S) + node["by"], plus(pl.col(E), node["by"]))


def slice_(node: Node, frame: Frame, limit: int) -> Frame:
    start, end = node["start"], node["end"]
    cut = lived(frame, pl.max_horizontal(pl.col(S), pl.lit(start)), pl.min_horizontal(pl.col(E), pl.lit(end)))
    return cut.filter(pl.col(S) < pl.col(E))


def alter(node: Node, frame: Frame, limit: int) -> Frame:
    """Twice as long, from a start on a grid."""
    start = floor_to(pl.col(S), node["grid"], 0) if node["grid"] else pl.col(S)
    length = pl.col(E) - pl.col(S)
    return lived(frame, start, pl.when(pl.col(E) == INF).then(INF).otherwise(start + length * node["times"]))


def chop(node: Node, frame: Frame, limit: int) -> Frame:
    period, offset = node["period"], node["offset"]
    vs, ve = lifetimes(frame)
    rows, cell = ranges((vs - offset) // period, (ve - 1 - offset) // period + 1, limit)
    grid = cell * period + offset
    return during(frame, rows, np.maximum(vs[rows], grid), np.minimum(ve[rows], grid + period))


def session(node: Node, frame: Frame, limit: int) -> Frame:
    (group,) = numbered([frame], [node["by"]])
    ordered = frame.with_columns(_g=pl.Series(group)).sort("_g", S)
    new = (pl.col(S) - pl.col(S).shift(1) >= node["timeout"]) | (pl.col("_g") != pl.col("_g").shift(1))
    ordered = ordered.with_columns(_n=new.fill_null(True).cum_sum())
    first, last = pl.col(S).min().over("_n"), pl.col(S).max().over("_n")
    return lived(ordered, first, last + node["timeout"]).drop("_g", "_n")


def clip(node: Node, frame: Frame, other: Frame, limit: int) -> Frame:
    on = node["on"]
    left, right = numbered([frame, other], [on, on])
    known = without_missing(other, on)
    (vs, ve), cuts = lifetimes(frame), other[S].to_numpy()[known]
    clock = Clock(vs, ve, cuts)
    points = np.append(np.unique(clock.place(right[known], cuts)), np.iinfo(np.int64).max)
    following = points[np.searchsorted(points, clock.place(left, vs), "right")]
    cut = (following < clock.place(left, ve)) & without_missing(frame, on)
    end = np.where(cut, clock.times[np.where(cut, following % (len(clock.times) + 1), 0)], ve)
    return during(frame, np.arange(frame.height), vs, end)


# --- several tables ------------------------------------------------------------------------------------------------


def union(node: Node, *frames: Frame, limit: int) -> Frame:
    if any(set(f.columns) != set(frames[0].columns) for f in frames):
        raise ValueError("a union of different columns")
    return pl.concat([f.select(frames[0].columns) for f in frames])


def difference(node: Node, left: Frame, right: Frame, limit: int) -> Frame:
    names = payload(left)
    if set(names) != set(payload(right)):
        raise ValueError("a difference of different columns")
    one, other = numbered([left, right], [names, names])
    (vs, ve), (other_vs, other_ve) = lifetimes(left), lifetimes(right)
    times = np.concatenate([vs, ve, other_vs, other_ve])
    changes = np.repeat([1, -1, -1, 1], [len(vs), len(vs), len(other_vs), len(other_vs)])
    return of_groups(left, one, *levels(np.concatenate([one, one, other, other]), times, changes, limit))


def coalesce(node: Node, frame: Frame, limit: int) -> Frame:
    return difference(node, frame, frame.clear(), limit)


def of_groups(frame: Frame, group: np.ndarray, g: np.ndarray, start: np.ndarray, end: np.ndarray) -> Frame:
    """For each group with a lifetime its payload."""
    known, rows = np.unique(group, return_index=True)
    return during(frame, rows[np.searchsorted(known, g)], start, end)


def distinct(node: Node, frame: Frame, limit: int) -> Frame:
    (group,) = numbered([frame], [payload(frame)])
    return of_groups(frame, group, *merged(group, *lifetimes(frame)))


def intersect(node: Node, left: Frame, right: Frame, limit: int) -> Frame:
    names = payload(left)
    one, other = (distinct(node, f, limit) for f in (left, right))
    groups = numbered([one, other], [names, names])
    rows, partners = overlaps((groups[0], *lifetimes(one)), (groups[1], *lifetimes(other)), limit)
    return common(one, other, rows, partners)


def common(left: Frame, right: Frame, rows: np.ndarray, partners: np.ndarray) -> Frame:
    """The rows of the left during the time that they share with their partners."""
    (vs, ve), (other_vs, other_ve) = lifetimes(left), lifetimes(right)
    start, end = np.maximum(vs[rows], other_vs[partners]), np.minimum(ve[rows], other_ve[partners])
    return during(left, rows, start, end)


def pairs(node: Node, left: Frame, right: Frame, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with equal keys that live together, for which the condition holds."""
    known = [np.flatnonzero(without_missing(f, node["on"])) for f in (left, right)]
    frames = [f[rows] for f, rows in zip((left, right), known, strict=True)]
    groups = numbered(frames, [node["on"], node["on"]])
    rows, partners = overlaps((groups[0], *lifetimes(frames[0])), (groups[1], *lifetimes(frames[1])), limit)
    rows, partners = known[0][rows], known[1][partners]
    if node.get("where"):
        found = both(node, left, right, rows, partners).select(predicate(node["where"]).fill_null(False))
        holds = found.to_series().to_numpy()
        rows, partners = rows[holds], partners[holds]
    return rows, partners


def both(node: Node, left: Frame, right: Frame, rows: np.ndarray, partners: np.ndarray) -> Frame:
    others = [c for c in payload(right) if c not in node["on"]]
    names = {c: c + "_right" for c in others if c in left.columns}
    if not others:
        return left[rows]
    return left[rows].hstack(right.select(others)[partners].rename(names).get_columns())


def join(node: Node, left: Frame, right: Frame, limit: int) -> Frame:
    how = node["how"]
    rows, partners = pairs(node, left, right, limit)
    shared = common(left, right, rows, partners)
    if how in ("semi", "anti"):
        return partnered(left, rows, shared, how == "semi")
    found = [both(node, left, right, rows, partners).with_columns(shared.select(S, E))]
    if how in ("left", "full"):
        found.append(partnered(left, rows, shared, False))
    if how == "full":
        alone = partnered(right, partners, shared, False)
        others = {c: c + "_right" for c in payload(right) if c not in node["on"] and c in left.columns}
        found.append(alone.rename(others))
    return pl.concat(found, how="diagonal")


def partnered(frame: Frame, rows: np.ndarray, shared: Frame, wanted: bool) -> Frame:
    """Rows while they have a partner, or while they have none."""
    row, start, end = merged(rows, *lifetimes(shared))
    if wanted:
        return during(frame, row, start, end)
    return during(frame, *gaps(*lifetimes(frame), row, start, end))


# --- snapshots -----------------------------------------------------------------------------------------------------


def in_snapshots(frame: Frame, by: list[str], limit: int) -> Frame:
    """Each row once for every snapshot of its group, as `_n` with the ends `_s` and `_e`; `_vs` is the row's start."""
    (group,) = numbered([frame], [by])
    rows, snapshot, start, end = snapshots(group, *lifetimes(frame), limit)
    alive = during(frame.with_columns(_vs=pl.col(S)), rows, start[snapshot], end[snapshot])
    return alive.with_columns(_n=pl.Series(snapshot))


def aggregate(node: Node, frame: Frame, limit: int) -> Frame:
    alive = in_snapshots(frame, node["by"], limit)
    result = alive.group_by("_n").agg(
        pl.col(S).first(),
        pl.col(E).first(),
        *(pl.col(c).first() for c in node["by"]),
        *(one_aggregate(*what, schema=frame.schema).alias(name) for name, what in node["aggregates"]),
    )
    return result.drop("_n")


def mean(values: pl.Expr, known: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """Of decimals by whole numbers of their last digit. Both are exact as doubles while they are below 2 ** 53, so the
    quotient is the only rounding."""
    if isinstance(kind, pl.Decimal):
        return values.to_physical().sum().cast(pl.Float64) / (known * 10**kind.scale)
    return total(values).cast(pl.Float64) / known


def total(values: pl.Expr) -> pl.Expr:
    return values.sum()


def one_aggregate(
    kind: str, column: str | None = None, q: str = "1/2", *, schema: Mapping[str, pl.DataType]
) -> pl.Expr:
    if column is None:
        return pl.len().cast(pl.Int64)
    values = pl.col(column).drop_nulls()
    by_start = values.sort_by(pl.col("_vs").filter(pl.col(column).is_not_null()), values)
    known = pl.col(column).count()
    match kind:
        case "count":
            return known.cast(pl.Int64)
        case "sum":
            return pl.when(known > 0).then(total(values))
        case "avg":
            return pl.when(known > 0).then(mean(values, known, schema[column]))
        case "stddev":
            return (values - values.min()).cast(pl.Float64).std(ddof=1)
        case "min":
            return values.min()
        case "max":
            return values.max()
        case "first":
            return by_start.first()
        case "last":
            return by_start.last()
        case "quantile":
            share = Fraction(q)
            place = (known.cast(pl.Int64) * share.numerator + share.denominator - 1) // share.denominator - 1
            return pl.when(known > 0).then(values.sort().get(pl.max_horizontal(place, pl.lit(0)), null_on_oob=True))
        case "range":
            return values.max() - values.min()
    raise ValueError(f"no aggregate {kind}")


def top_k(node: Node, frame: Frame, limit: int) -> Frame:
    """Missing values come last, either way; ties go by payload, its columns in the order of their names."""
    alive = in_snapshots(frame, node["by"], limit)
    order, down = node["order"], node["descending"]
    ties = sorted(payload(frame))
    sorted_rows = alive.sort(
        "_n",
        *order,
        *ties,
        descending=[False, *down, *(False for _ in ties)],
        nulls_last=[False, *(True for _ in down), *(False for _ in ties)],
        maintain_order=True,
    )
    place = pl.int_range(pl.len()).over("_n") + 1
    best = sorted_rows.with_columns(_place=place).filter(pl.col("_place") <= node["k"])
    if node["rank"]:
        best = best.with_columns(pl.col("_place").alias(node["rank"]))
    return best.drop("_n", "_vs", "_place")


def same(node: Node, frame: Frame, *others: Frame, limit: int) -> Frame:
    """Sorted, or merged with its copies: the table is the same."""
    return frame


def countdown(node: Node, frame: Frame, limit: int) -> Frame:
    """Each row, and for each with more than 0 a row with 1 less, and so on; at each instant every row once."""
    column, steps = node["column"], [frame]
    while (more := steps[-1].filter(pl.col(column) > 0)).height:
        steps.append(more.with_columns(pl.col(column) - 1))
        if sum(s.height for s in steps) > limit:
            raise TooLargeError
    return distinct(node, pl.concat(steps), limit)


def regex(node: Node, frame: Frame, limit: int) -> Frame:
    """`low+ high`: one or more events of the first kind, one after the other, then one of the second."""
    by, window = node["by"], node["window"]
    ordered = frame.drop_nulls(by).sort(by, S)
    low, high = (ordered.select(predicate(p).fill_null(False)).to_series().to_numpy() for p in node["steps"])
    key, vs = ordered[by].to_numpy(), ordered[S].to_numpy()
    place = np.arange(len(vs))
    fresh = np.append(True, key[1:] != key[:-1]) if len(vs) else np.zeros(0, bool)
    begins = np.maximum.accumulate(np.where(low & ~fresh & np.append(False, low[:-1]), 0, place)) if len(vs) else place
    last = np.flatnonzero(high[1:] & low[:-1] & ~fresh[1:]) + 1
    rows, first = ranges(begins[last - 1], last, limit)
    last = last[rows]
    inside = vs[last] - vs[first] < window
    first, last = first[inside], last[inside]
    found = ordered[last].select(by).with_columns(pl.Series("begin", vs[first]), pl.Series("end", vs[last]))
    return found.with_columns(pl.Series(S, vs[last]), pl.Series(E, vs[first] + window))


OPERATORS: dict[str, Callable[..., Frame]] = {
    "where": where,
    "project": project,
    "sliding": sliding,
    "moving": moving,
    "hopping": hopping,
    "inserts": inserts,
    "deletes": deletes,
    "shift": shift,
    "slice": slice_,
    "alter": alter,
    "chop": chop,
    "session": session,
    "clip": clip,
    "union": union,
    "difference": difference,
    "intersect": intersect,
    "distinct": distinct,
    "coalesce": coalesce,
    "join": join,
    "aggregate": aggregate,
    "top_k": top_k,
    "sort": same,
    "merge": same,
    "countdown": countdown,
    "regex": regex,
    "match": matches,
}
