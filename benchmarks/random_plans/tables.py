"""Random tables as a source delivers them, and the canonical tables that are left after all corrections.

A source delivers rows late, twice, with wrong ends that are corrected later, and rows that are retracted. No row breaks
a promise: at arrival time `a` no row with a start above `a` has arrived, and every row arrives at most `LATE` ticks
after its sync time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

INF = 2**63 - 1
ZONE = "Europe/Berlin"
EPOCH = int(datetime(2024, 3, 30).timestamp()) * 1_000_000
LATE = 200
"""How many mean gaps between starts a row may be late."""
TIME_TYPES: dict[str, pl.DataType] = {
    "int": pl.Int64(),
    "us": pl.Datetime("us"),
    "zoned": pl.Datetime("us", ZONE),
}
S, E = "_s", "_e"
"""The ends of a lifetime in canonical tables: whole chronons, INF for none."""

PAYLOAD: dict[str, pl.DataType] = {
    "k": pl.Int64(),
    "g": pl.String(),
    "v": pl.Int64(),
    "w": pl.Int32(),
    "h": pl.UInt8(),
    "b": pl.Int64(),
    "f": pl.Float64(),
    "r": pl.Float64(),
    "d": pl.Decimal(12, 2),
    "s": pl.String(),
    "z": pl.Datetime("us", ZONE),
    "o": pl.Boolean(),
    "y": pl.Date(),
}
ALWAYS = ("k", "g", "v")
OPTIONAL = tuple(name for name in PAYLOAD if name not in ALWAYS)
TEXTS = ["", "a", "A", "b", "ab", "ba", "zebra", "Ärger", "ärger", "日本", "x y", "'quoted'", "🙂", "%", "_", "null"]


@dataclass(frozen=True)
class Shape:
    """What the tables of a case look like."""

    rows: int
    time: str = "int"
    tick: int = 10
    """The mean gap between two starts."""
    keys: int = 100
    live: float = 8.0
    """How many tuples live at the same time, about."""
    columns: tuple[str, ...] = ALWAYS
    corrections: bool = True
    endless: bool = False
    instants: bool = False
    unique: bool = False
    """No two rows of a source start together."""
    progress: str = "delay"
    nulls: bool = True

    @property
    def span(self) -> int:
        return self.rows * self.tick

    @property
    def start(self) -> int:
        return 0 if self.time == "int" else EPOCH

    @property
    def delay(self) -> int:
        return LATE * self.tick

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return {name: PAYLOAD[name] for name in self.columns}


@dataclass(frozen=True)
class Table:
    """One source: `delivered` in arrival order, as a user's table, and `canonical`, with lifetimes in chronons."""

    delivered: pl.DataFrame
    canonical: pl.DataFrame


def make(shape: Shape, rng: np.random.Generator) -> Table:
    n = shape.rows
    vs = shape.start + starts(shape, rng)
    ends = [first_ends(shape, vs, rng)]
    late = (rng.random(n) < 0.2) if shape.progress != "ordered" else np.zeros(n, bool)
    arrivals = [vs + np.where(late, rng.integers(0, shape.delay + 1, n), 0)]
    for share in (0.12, 0.03) if shape.corrections else ():
        correct(shape, rng, vs, ends, arrivals, share)
    payload = values(shape, rng, n)
    twice = (rng.random(n) < 0.02) & (not shape.unique)
    rows = [
        step(vs, before, after, arrived, number, changed)
        for number, (before, after, arrived, changed) in enumerate(steps(vs, ends, arrivals))
    ]
    emitted = pl.concat(rows)
    copies = emitted.filter(pl.col("number") == 0).filter(pl.Series(twice))
    order = pl.concat([emitted, copies]).sort("arrival", "number", "row", maintain_order=True)
    delivered = hold(shape, order, payload)
    last = pl.DataFrame({S: vs, E: ends[-1]})
    first = pl.DataFrame({S: vs, E: ends[0]}).filter(pl.Series(twice))
    canonical = pl.concat([last.hstack(payload), first.hstack(payload.filter(pl.Series(twice)))])
    return Table(delivered, canonical.filter(pl.col(S) < pl.col(E)))


def starts(shape: Shape, rng: np.random.Generator) -> np.ndarray:
    if shape.unique:
        return np.sort(rng.choice(shape.span, shape.rows, replace=False))
    return np.sort(rng.integers(0, shape.span, shape.rows))


def first_ends(shape: Shape, vs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if shape.instants:
        return vs + 1
    return some_ends(shape, vs, rng)


def some_ends(shape: Shape, vs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    length = 1 + rng.exponential(shape.live * shape.tick, len(vs)).astype(np.int64)
    ends = vs + length
    if shape.endless:
        ends = np.where(rng.random(len(vs)) < 10 / len(vs), INF, ends)
    return ends


def correct(
    shape: Shape,
    rng: np.random.Generator,
    vs: np.ndarray,
    ends: list[np.ndarray],
    arrivals: list[np.ndarray],
    share: float,
) -> None:
    """One more opinion about the ends: some change, and of these some rows are retracted."""
    n, old = len(vs), ends[-1]
    new = some_ends(shape, vs, rng)
    new = np.where((rng.random(n) < 0.25) | shape.instants, vs, new)
    sync = np.minimum(old, new)
    latest = np.where(sync > INF - shape.delay, INF, sync + shape.delay)
    wanted = (rng.random(n) < share) & (arrivals[-1] <= latest) & (new != old) & (new != INF) & (old > vs)
    room = np.where(wanted, np.minimum(latest - arrivals[-1], shape.span), 0)
    arrivals.append(arrivals[-1] + (room * rng.random(n)).astype(np.int64))
    ends.append(np.where(wanted, new, old))


def steps(vs: np.ndarray, ends: list[np.ndarray], arrivals: list[np.ndarray]) -> list[tuple[Any, ...]]:
    everything = np.ones(len(vs), bool)
    found = [(ends[0], ends[0], arrivals[0], everything)]
    return found + [(ends[i - 1], ends[i], arrivals[i], ends[i - 1] != ends[i]) for i in range(1, len(ends))]


def step(
    vs: np.ndarray, before: np.ndarray, after: np.ndarray, arrived: np.ndarray, number: int, changed: np.ndarray
) -> pl.DataFrame:
    new = pl.Series(after) if number else pl.repeat(None, len(vs), dtype=pl.Int64, eager=True)
    frame = pl.DataFrame({"vs": vs, "ve": before, "ve_new": new, "arrival": arrived, "row": np.arange(len(vs))})
    sync = np.minimum(before, after) if number else vs
    frame = frame.with_columns(sync=pl.Series(sync), number=pl.lit(number, pl.Int64))
    return frame.filter(pl.Series(changed))


def hold(shape: Shape, order: pl.DataFrame, payload: pl.DataFrame) -> pl.DataFrame:
    """The rows as a user's table: times of the case's type, an endless lifetime without an end."""
    sync = order["sync"].to_numpy()
    frame = order.select("vs", pl.when(pl.col("ve") != INF).then(pl.col("ve")).alias("ve"), "ve_new")
    if shape.progress == "cti":
        after = np.append(np.minimum.accumulate(sync[::-1])[::-1][1:], sync.max(initial=0))
        here = (np.arange(len(sync)) % 97 == 96) | (np.arange(len(sync)) == len(sync) - 1)
        frame = frame.with_columns(cti=pl.when(pl.Series(here)).then(pl.Series(after)))
    kind = TIME_TYPES[shape.time]
    frame = frame.select(as_user_time(pl.col(c), kind).alias(c) for c in frame.columns)
    if not shape.corrections:
        frame = frame.drop("ve_new")
    if shape.instants:
        frame = frame.drop("ve")
    return frame.hstack(payload[order["row"].to_numpy()].get_columns())


def as_user_time(time: pl.Expr, kind: pl.DataType) -> pl.Expr:
    if not isinstance(kind, pl.Datetime):
        return time
    naive = time.cast(pl.Datetime("us"))
    return naive if kind.time_zone is None else naive.dt.replace_time_zone("UTC").dt.convert_time_zone(kind.time_zone)


def as_chronons(time: pl.Expr, kind: pl.DataType) -> pl.Expr:
    return time if kind == pl.Int64 else time.to_physical().cast(pl.Int64)


def values(shape: Shape, rng: np.random.Generator, n: int) -> pl.DataFrame:
    columns = {}
    for name, kind in shape.schema.items():
        column = one_column(name, kind, shape, rng, n)
        share = {"k": 0.01, "g": 0.02}.get(name, 0.05) if shape.nulls else 0.0
        columns[name] = pl.select(pl.when(pl.Series(rng.random(n) >= share)).then(column)).to_series().alias(name)
    return pl.DataFrame(columns)


def one_column(name: str, kind: pl.DataType, shape: Shape, rng: np.random.Generator, n: int) -> pl.Series:
    match name:
        case "k":
            found: Any = rng.integers(0, shape.keys, n)
        case "g":
            found = pl.Series([f"g{i}" for i in range(12)])[rng.integers(0, 12, n)]
        case "v":
            found = rng.integers(0, 10, n)
        case "w":
            found = rng.integers(-1000, 1001, n)
        case "h":
            found = rng.integers(0, 256, n)
        case "b":
            found = rng.choice([2**53, -(2**53), 2**40, 0], n) + rng.integers(-3, 4, n)
        case "f":
            found = rng.integers(-400, 401, n) / 4
        case "r":
            found = rng.standard_normal(n) * 10.0 ** rng.integers(-3, 6, n)
        case "d":
            return (pl.Series(rng.integers(-99_999, 100_000, n)).cast(pl.Decimal(18, 0)) / Decimal(100)).cast(kind)
        case "s":
            found = pl.Series(TEXTS)[rng.integers(0, len(TEXTS), n)]
        case "z":
            hours = pl.Series(EPOCH + rng.integers(0, 40, n) * 3_600_000_000).cast(pl.Datetime("us"))
            return hours.dt.replace_time_zone("UTC").dt.convert_time_zone(ZONE)
        case "y":
            found = rng.integers(19_000, 19_030, n).astype(np.int32)
        case _:
            found = rng.random(n) < 0.4
    return pl.Series(found).cast(kind)


def source_arguments(shape: Shape) -> Mapping[str, Any]:
    """The arguments of `cedr.source` for these tables."""
    found: dict[str, Any] = {"vs": "vs"}
    if not shape.instants:
        found["ve"] = "ve"
    if shape.corrections:
        found["ve_new"] = "ve_new"
    if shape.progress == "delay":
        found["delay"] = shape.delay
    if shape.progress == "cti":
        found["cti"] = "cti"
    if shape.progress == "ordered":
        found["ordered"] = True
    return found
