"""Lifetimes in arrays: groups, snapshots, pairs that overlap, merged and counted lifetimes. Nothing of cedr is used.

Times of a group are compared through one number: the group's number times the number of different times, plus the
place of the time among them. So one search over all groups is one `searchsorted`.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from random_plans.tables import E, S

Array = np.ndarray


class TooLargeError(Exception):
    """An answer would have more rows than a case may have."""


def numbered(frames: Sequence[pl.DataFrame], by: Sequence[Sequence[str]]) -> list[Array]:
    """The number of each row's group, over several frames together. Missing values are equal to each other."""
    if not by[0]:
        return [np.zeros(frame.height, np.int64) for frame in frames]
    names = [f"c{i}" for i in range(len(by[0]))]
    parts = [
        frame.select(list(columns)).rename(dict(zip(columns, names, strict=True)))
        for frame, columns in zip(frames, by, strict=True)
    ]
    all_rows = pl.concat(parts, how="vertical_relaxed")
    groups = all_rows.unique(maintain_order=True).with_row_index("number")
    found = all_rows.join(groups, on=names, how="left", nulls_equal=True, maintain_order="left")
    numbers = found["number"].cast(pl.Int64).to_numpy()
    return np.split(numbers, np.cumsum([part.height for part in parts])[:-1])


def without_missing(frame: pl.DataFrame, by: Sequence[str]) -> Array:
    """Rows that have all keys: a missing key has no partner."""
    if not by:
        return np.ones(frame.height, bool)
    return frame.select(pl.all_horizontal(pl.col(c).is_not_null() for c in by)).to_series().to_numpy()


def lifetimes(frame: pl.DataFrame) -> tuple[Array, Array]:
    return frame[S].to_numpy(), frame[E].to_numpy()


class Clock:
    """Times of groups as single numbers, in the order of group, then time."""

    def __init__(self, *times: Array) -> None:
        self.times = np.unique(np.concatenate(times))

    def place(self, group: Array, time: Array) -> Array:
        return group * (len(self.times) + 1) + np.searchsorted(self.times, time)


def ranges(first: Array, after: Array, limit: int) -> tuple[Array, Array]:
    """All numbers from `first` to before `after`, and the row that each is from."""
    sizes = np.maximum(after - first, 0)
    total = int(sizes.sum())
    if total > limit:
        raise TooLargeError
    rows = np.repeat(np.arange(len(first)), sizes)
    within = np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rows, first[rows] + within


def snapshots(group: Array, vs: Array, ve: Array, limit: int) -> tuple[Array, Array, Array, Array]:
    """For each tuple the snapshots it lives in: the row, the snapshot's number, and the ends of each snapshot."""
    clock = Clock(vs, ve)
    starts, ends = clock.place(group, vs), clock.place(group, ve)
    points = np.unique(np.concatenate([starts, ends]))
    rows, snapshot = ranges(np.searchsorted(points, starts), np.searchsorted(points, ends), limit)
    at = clock.times[points % (len(clock.times) + 1)]
    return rows, snapshot, at, np.append(at[1:], 0)


def overlaps(left: tuple[Array, Array, Array], right: tuple[Array, Array, Array], limit: int) -> tuple[Array, Array]:
    """Pairs of rows of the same group that live together; each side is its groups, starts and ends."""
    clock = Clock(left[1], left[2], right[1], right[2])
    one, other = ((clock.place(g, s), clock.place(g, e)) for g, s, e in (left, right))
    by_start, by_other = np.argsort(one[0], kind="stable"), np.argsort(other[0], kind="stable")
    found = np.searchsorted(other[0][by_other], one[0]), np.searchsorted(other[0][by_other], one[1])
    l1, r1 = ranges(*found, limit)
    found = np.searchsorted(one[0][by_start], other[0], "right"), np.searchsorted(one[0][by_start], other[1])
    r2, l2 = ranges(*found, limit)
    return np.concatenate([l1, by_start[l2]]), np.concatenate([by_other[r1], r2])


def merged(group: Array, vs: Array, ve: Array) -> tuple[Array, Array, Array]:
    """Lifetimes of a group that overlap or meet, as one: groups, starts and ends."""
    frame = pl.DataFrame({"g": group, S: vs, E: ve}).sort("g", S, E)
    before = pl.col(E).cum_max().shift(1).over("g")
    part = frame.with_columns(part=(before.is_null() | (pl.col(S) > before)).cum_sum())
    whole = part.group_by("part").agg(pl.col("g").first(), pl.col(S).min(), pl.col(E).max()).sort("g", S)
    return whole["g"].to_numpy(), whole[S].to_numpy(), whole[E].to_numpy()


def gaps(vs: Array, ve: Array, row: Array, start: Array, end: Array) -> tuple[Array, Array, Array]:
    """What is left of each tuple without some of its parts, which are merged: rows, starts and ends."""
    everything = np.arange(len(vs))
    lower = pl.DataFrame({"row": np.concatenate([everything, row]), "t": np.concatenate([vs, end])}).sort("row", "t")
    upper = pl.DataFrame({"row": np.concatenate([row, everything]), "t": np.concatenate([start, ve])}).sort("row", "t")
    pieces = lower["row"].to_numpy(), lower["t"].to_numpy(), upper["t"].to_numpy()
    real = pieces[1] < pieces[2]
    return pieces[0][real], pieces[1][real], pieces[2][real]


def levels(group: Array, time: Array, change: Array, limit: int) -> tuple[Array, Array, Array]:
    """The k-th copy lives where the sum of changes is at least k: groups, starts and ends."""
    frame = pl.DataFrame({"g": group, "t": time, "n": change}).group_by("g", "t").agg(pl.col("n").sum()).sort("g", "t")
    frame = frame.with_columns(after=pl.max_horizontal(pl.col("n").cum_sum().over("g"), pl.lit(0)))
    frame = frame.with_columns(before=pl.col("after").shift(1).over("g").fill_null(0))
    g, t, before, after = (frame[c].to_numpy() for c in ("g", "t", "before", "after"))
    opened, level_up = ranges(before, after, limit)
    closed, level_down = ranges(after, before, limit)
    first = pl.DataFrame({"g": g[opened], "level": level_up, S: t[opened]}).sort("g", "level", S)
    last = pl.DataFrame({"g": g[closed], "level": level_down, E: t[closed]}).sort("g", "level", E)
    return first["g"].to_numpy(), first[S].to_numpy(), last[E].to_numpy()
