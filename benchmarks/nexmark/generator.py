"""The events of Nexmark, made from a seed: of 50 events one is a person, three are auctions and 46 are bids.

All three come in one order of arrival, 20 % late by up to 5 s, as in `peers.data`. Auctions belong to people who have
registered lately; bids go to auctions that opened lately, half of them to a few hot ones. Times are whole milliseconds,
prices whole cents. Every name is made up from the lists below.

With corrections, a part of the bids that came in time is retracted within 5 s and emitted again with another price. A
row that retracts has `ve_new`, the corrected end, which is its start: the bid never was.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from peers.data import BEGIN, FLUSH, FLUSH_AFTER, LATENESS, SECOND, SHARE_LATE, Shape, write_files

MIX = {"person": 1, "auction": 3, "bid": 46}
STREAMS = tuple(MIX)
FIRST_NAMES = ("Ada", "Bela", "Cleo", "Dora", "Emil", "Fina", "Gero", "Hana", "Ivo", "Juno")
LAST_NAMES = ("Amber", "Birch", "Cedar", "Dahl", "Elder", "Fern", "Gorse", "Hazel", "Iris")
CITIES = ("Northby", "Southby", "Eastby", "Westby", "Midby", "Overby")
STATES = ("OR", "ID", "CA", "WA", "NV", "AZ")
CATEGORIES = (10, 15)
RECENT_PEOPLE, RECENT_AUCTIONS, HOT_EVERY = 1_000, 100, 50
LONGEST = 20_000
"""Milliseconds that an auction is open, at most."""
SHARE_CORRECTED = 0.02
MILLISECOND = 1_000


@dataclass(frozen=True)
class Clock:
    """Of each event of all kinds: its number among its kind, when it happened and when it arrived, in microseconds."""

    kind: np.ndarray
    number: np.ndarray
    happened: np.ndarray
    arrived: np.ndarray


def clock(n: int, rate: int, rng: np.random.Generator) -> Clock:
    parts = np.repeat(np.arange(len(MIX)), list(MIX.values()))
    kind = parts[np.arange(n) % len(parts)]
    number = np.zeros(n, np.int64)
    for each in range(len(MIX)):
        number[kind == each] = np.arange((kind == each).sum())
    happened = np.sort(rng.integers(0, n * SECOND // rate, n) // MILLISECOND * MILLISECOND)
    late = np.where(rng.random(n) < SHARE_LATE, rng.integers(0, LATENESS, n), 0)
    return Clock(kind, number, BEGIN + happened, BEGIN + happened + late)


def tables(n: int, rate: int, seed: int, corrected: bool = False) -> dict[str, pl.DataFrame]:
    """Each stream in order of arrival, with a column `arrived`; bids with `ve_new` if there are corrections."""
    rng = np.random.default_rng(seed)
    time = clock(n, rate, rng)
    made = {"person": people(time, rng), "auction": auctions(time, rng), "bid": bids(time, rng)}
    if corrected:
        made["bid"] = with_corrections(made["bid"], rng)
    return {name: table.sort("arrived", maintain_order=True) for name, table in made.items()}


def times(clock: Clock, kind: int) -> dict[str, np.ndarray]:
    of_kind = clock.kind == kind
    return {"ts": clock.happened[of_kind], "arrived": clock.arrived[of_kind]}


def stamped(columns: dict[str, object]) -> pl.DataFrame:
    """Columns of microseconds are timestamps."""
    stamps = [name for name in ("ts", "expires") if name in columns]
    return pl.DataFrame(columns).with_columns(pl.col(stamps).cast(pl.Datetime("us", "UTC")))


def known(clock: Clock, kind: int, of: int) -> np.ndarray:
    """For each event of a kind, how many of another kind were there before it; at least one."""
    before: np.ndarray = np.cumsum(clock.kind == of)[clock.kind == kind]
    return before.clip(min=1)


def people(clock: Clock, rng: np.random.Generator) -> pl.DataFrame:
    at = times(clock, 0)
    n = len(at["ts"])
    first, last = rng.choice(FIRST_NAMES, n), rng.choice(LAST_NAMES, n)
    names = [f"{a} {b}" for a, b in zip(first, last, strict=True)]
    where = {"city": rng.choice(CITIES, n), "state": rng.choice(STATES, n)}
    return stamped({"ts": at["ts"], "id": np.arange(n), "name": names, **where, "arrived": at["arrived"]})


def auctions(clock: Clock, rng: np.random.Generator) -> pl.DataFrame:
    at = times(clock, 1)
    n = len(at["ts"])
    there = known(clock, 1, of=0)
    seller = there - 1 - rng.integers(0, np.minimum(there, RECENT_PEOPLE))
    open_for = rng.integers(1_000, LONGEST, n) * MILLISECOND
    about = {"id": np.arange(n), "seller": seller, "category": rng.integers(*CATEGORIES, n)}
    return stamped({"ts": at["ts"], **about, "expires": at["ts"] + open_for, "arrived": at["arrived"]})


def bids(clock: Clock, rng: np.random.Generator) -> pl.DataFrame:
    at = times(clock, 2)
    n = len(at["ts"])
    there, registered = known(clock, 2, of=1), known(clock, 2, of=0)
    cold = there - 1 - rng.integers(0, np.minimum(there, RECENT_AUCTIONS))
    hot = (there - 1) // HOT_EVERY * HOT_EVERY
    bidder = registered - 1 - rng.integers(0, np.minimum(registered, RECENT_PEOPLE))
    price = np.exp(rng.normal(7, 1.5, n)).astype(np.int64) + 100
    auction = np.where(rng.random(n) < 0.5, hot, cold)
    return stamped({"ts": at["ts"], "auction": auction, "bidder": bidder, "price": price, "arrived": at["arrived"]})


def with_corrections(bid: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    in_time = pl.col("ts").dt.epoch("us") == pl.col("arrived")
    wrong = bid.filter(in_time & pl.Series(rng.random(bid.height) < SHARE_CORRECTED))
    later = pl.col("arrived") + pl.Series(rng.integers(1, LATENESS, wrong.height))
    back = wrong.with_columns(arrived=later)
    again = back.with_columns(price=pl.col("price") + pl.Series(rng.integers(1, 1_000, wrong.height)))
    never, nothing = pl.col("ts").alias("ve_new"), pl.lit(None, bid.schema["ts"]).alias("ve_new")
    emitted = [bid.with_columns(nothing), back.with_columns(never), again.with_columns(nothing)]
    return pl.concat(emitted)


def settled(bid: pl.DataFrame) -> pl.DataFrame:
    """Bids as they stand once all corrections have been worked in."""
    if "ve_new" not in bid.columns:
        return bid
    same = ["ts", "auction", "bidder", "price"]
    count = pl.when(pl.col("ve_new").is_null()).then(1).otherwise(-1).sum().alias("count")
    left = bid.group_by(same).agg(count).filter(pl.col("count") > 0)
    return left.select(pl.col(same).repeat_by("count").explode())


def flush(table: pl.DataFrame) -> pl.DataFrame:
    """One event far in the future, whose whole numbers are all FLUSH."""
    far = pl.lit(BEGIN + FLUSH_AFTER).cast(pl.Datetime("us", "UTC"))
    numbers = [c for c, kind in table.schema.items() if kind.is_integer()]
    stamps = {"ts": far, "expires": far + pl.duration(seconds=1)}
    row = table.head(1).with_columns(pl.lit(FLUSH, pl.Int64).alias(c) for c in numbers)
    return row.with_columns(**{name: stamp for name, stamp in stamps.items() if name in table.columns})


def write(folder: Path, streams: tuple[str, ...], shape: Shape, corrected: bool = False) -> None:
    """Those of all three that are asked for; the files of each hold what arrived up to the same moments."""
    made = tables(shape.events, shape.rate, 1, corrected)
    arrived = pl.concat([table["arrived"] for table in made.values()]).sort()
    cuts = [arrived[len(arrived) * number // shape.files] for number in range(1, shape.files)]
    for name in streams:
        table = made[name]
        bounds = [0, *(table["arrived"].search_sorted(cut) for cut in cuts), table.height]
        plain = table.drop("arrived")
        write_files(folder / name, plain, flush(plain), bounds)
