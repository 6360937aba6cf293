"""Queries to kill, and events for them: out of order, some too late, some corrected by their provider.

A file is a micro-batch. Values are whole numbers, so answers are equal or they are not.
"""

import random
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

import cedr
from cedr.stream import Stream

STEP, DELAY, LIFE = 1_000, 600, 800
SENSORS, SITES = 200, 6
COLUMNS = {"sensor": pl.Int64, "value": pl.Int64, "note": pl.String}
TIMES = {"vs": pl.Int64, "ve": pl.Int64, "ve_new": pl.Int64}


@dataclass(frozen=True)
class Size:
    files: int
    rows: int
    """In each file."""
    note: int = 50
    """Letters in a note. Long ones let the logs grow to where they call for snapshots."""


def source(name: str) -> Stream:
    return cedr.source(name, COLUMNS, vs="vs", ve="ve", times=cedr.Times(ve_new="ve_new"), delay=DELAY)


def hopping() -> Stream:
    """One stage: windows per sensor."""
    windows = source("readings").hopping(500, 100).group_by("sensor")
    return windows.agg(n=cedr.count(), total=cedr.sum("value"), note=cedr.max("note"))


def sites() -> Stream:
    """Two stages: pairs by sensor, then what lives at each instant at each site."""
    pairs = source("readings").join(source("limits"), on="sensor", where="value > value_right")
    by_site = pairs.group_by(site=pl.col("sensor") % SITES)
    return by_site.agg(n=cedr.count(), total=cedr.sum("value"), note=cedr.max("note"))


QUERIES = {"hopping": hopping, "sites": sites}


class Tables(NamedTuple):
    """What a query reads: of each source a table for each file."""

    files: dict[str, list[pl.DataFrame]]

    def write(self, folder: Path) -> None:
        """Each source into a folder of its name."""
        for name, tables in self.files.items():
            (folder / name).mkdir(parents=True)
            for number, rows in enumerate(tables):
                rows.write_parquet(folder / name / f"{number:04}.parquet")

    def in_batches(self) -> list[dict[str, pl.DataFrame]]:
        """As Spark reads them: one file of every source at a time."""
        rounds = zip(*self.files.values(), strict=True)
        return [dict(zip(self.files, together, strict=True)) for together in rounds]


def tables(query: Stream, size: Size, seed: int = 1) -> Tables:
    return Tables({name: list(Provider(name, size, seed).tables()) for name in query.fragment().sources})


class Provider:
    """Of 20 rows two correct a recent one, and four come out of order, one of these later than was promised."""

    def __init__(self, name: str, size: Size, seed: int) -> None:
        self.size, self.random = size, random.Random(f"{name}-{seed}")
        self.recent: deque[tuple[Any, ...]] = deque(maxlen=100)

    def tables(self) -> Any:
        for number in range(self.size.files):
            starts = (number * STEP + i * STEP // self.size.rows for i in range(self.size.rows))
            yield pl.DataFrame([self._row(now) for now in starts], {**TIMES, **COLUMNS}, orient="row")

    def _row(self, now: int) -> tuple[Any, ...]:
        if self.recent and self.random.random() < 0.1:
            vs, ve, *corrected = self.recent.popleft()
            return vs, ve, self.random.choice([vs, (vs + ve) // 2, ve + LIFE]), *corrected
        vs = now - (self.random.randrange(2 * DELAY) if self.random.random() < 0.2 else 0)
        ve = vs + self.random.randrange(1, LIFE)
        note = "".join(self.random.choices("abcdefghijklmnopqrstuvwxyz", k=self.size.note))
        payload = self.random.randrange(SENSORS), self.random.randrange(100), note
        if vs > now - DELAY // 2:  # an event must have been sent before it is corrected
            self.recent.append((vs, ve, *payload))
        return vs, ve, None, *payload
