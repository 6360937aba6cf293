"""The events of the benchmarks `spark` and `peers`: from a seed, disordered, in Parquet files of one micro-batch each.

20 % of the events are late by up to 5 s: they arrive that much after an event with their time would have. The last
file of a stream is the flush: one event far in the future, which moves every watermark past all results. Its key is
FLUSH, and its results are not part of the answer. Values keep away from 0: a sum of few can be compared as well as
a sum of many.
"""

import os
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

SECOND = 1_000_000
LATENESS = 5 * SECOND
SHARE_LATE = 0.2
BEGIN = 1_700_000_000 * SECOND
FLUSH = -1
FLUSH_AFTER = 24 * 3600 * SECOND
ROW_GROUPS = 4
"""Per file, so that two cores can read one."""


@dataclass(frozen=True)
class Shape:
    """How many events, over how many keys and files, and how many for each second of event time; of all streams."""

    events: int = 4_000_000
    files: int = 8
    keys: int = 1_000
    rate: int = 2_000
    grain: int = 1
    """Times are multiples of this number of microseconds."""

    def part(self, share: int) -> "Shape":
        """One of this number of equal parts, in fewer files."""
        return replace(self, events=self.events // share, files=max(1, self.files // share))


def events(n: int, keys: int, rate: int, seed: int, grain: int = 1) -> pl.DataFrame:
    """`ts`, `k`, `v` in order of arrival."""
    rng = np.random.default_rng(seed)
    start = np.sort(rng.integers(0, n * SECOND // rate, n) // grain * grain)
    late = np.where(rng.random(n) < SHARE_LATE, rng.integers(0, LATENESS, n), 0)
    order = np.argsort(start + late, kind="stable")
    columns = {"ts": BEGIN + start[order], "k": rng.integers(0, keys, n), "v": 0.5 + rng.random(n)}
    return pl.DataFrame(columns).with_columns(pl.col("ts").cast(pl.Datetime("us", "UTC")))


def flush(n: int, rate: int) -> pl.DataFrame:
    far = BEGIN + n * SECOND // rate + FLUSH_AFTER
    row = pl.DataFrame({"ts": [far], "k": [FLUSH], "v": [0.0]})
    return row.with_columns(pl.col("ts").cast(pl.Datetime("us", "UTC")))


def write(folder: Path, streams: tuple[str, ...], shape: Shape) -> None:
    """A folder of files per stream. Spark takes files in the order of their times, so these are set."""
    n, rate = shape.events // len(streams), shape.rate // len(streams)
    for seed, stream in enumerate(streams):
        table = events(n, shape.keys, rate, seed, shape.grain)
        bounds = [n * number // shape.files for number in range(shape.files + 1)]
        write_files(folder / stream, table, flush(n, rate), bounds)


def write_files(folder: Path, table: pl.DataFrame, last: pl.DataFrame, bounds: list[int]) -> None:
    """The rows between neighbouring bounds in a file each, and a last file with the flush."""
    folder.mkdir(parents=True)
    for number, part in enumerate([*(table[a:b] for a, b in pairwise(bounds)), last]):
        path = folder / f"{number:03}.parquet"
        part.write_parquet(path, row_group_size=max(1, -(-part.height // ROW_GROUPS)))
        os.utime(path, (BEGIN // SECOND + number,) * 2)


def read(folder: Path, streams: tuple[str, ...]) -> dict[str, pl.DataFrame]:
    """All events of each stream but the flush, in order of arrival."""
    return {s: pl.concat(map(pl.read_parquet, files(folder / s))) for s in streams}


def files(folder: Path) -> list[Path]:
    """Those of a stream without the flush, in order of arrival."""
    return sorted(folder.glob("*.parquet"))[:-1]


def write_csv(folder: Path, streams: tuple[str, ...], partitions: int = 2) -> None:
    """Next to the Parquet files of a stream `NAME` a folder `NAME.csv`: rows dealt to files in turn, times in
    milliseconds, no header and no flush."""
    for stream, table in read(folder, streams).items():
        (folder / f"{stream}.csv").mkdir()
        plain = table.with_columns(pl.col(pl.Datetime).dt.epoch("ms"))
        for number in range(partitions):
            part = plain.gather_every(partitions, number)
            part.write_csv(folder / f"{stream}.csv" / f"{number}.csv", include_header=False)
