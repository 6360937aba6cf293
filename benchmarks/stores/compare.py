"""Where could state live that is larger than memory? The same changes to sorted rows in several stores.

    python benchmarks/stores/compare.py --rows 10000000 [--only blocks,mapped,lmdb,rocksdb,duckdb]

Rows `(key, time, 3 numbers)` as end points of an aggregate by key. A step adds 1,000 rows at random keys and reads all
rows of 1,000 random keys: what an operator does for a chunk of 1,000 events. `mapped` are the blocks of cedr in a file
that is mapped into memory, and from time to time its pages are given back, so that only what is in use is resident.
lmdb and rocksdict are not packages of cedr's lock; install them into another environment. See decision 46.
"""

import argparse
import mmap
import os
import resource
import shutil
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cedr.columnar.blocks import SortedBlocks

WIDTH, CHUNK = 5, 1000
KEY, VALUE = struct.Struct(">qq"), struct.Struct("<qqq")
Step = Callable[[np.ndarray, np.ndarray], int]


def sorted_rows(random: np.random.Generator, rows: int, keys: int) -> np.ndarray:
    made = np.ones((rows, WIDTH), dtype=np.int64)
    made[:, 0] = np.sort(random.integers(0, keys, rows))
    made[:, 1] = random.integers(0, 2**40, rows)
    return made[np.lexsort((made[:, 1], made[:, 0]))]


def blocks(rows: np.ndarray, _: Path) -> Step:
    store = SortedBlocks(WIDTH, 2, 2)
    store.replace(rows)

    def step(new: np.ndarray, keys: np.ndarray) -> int:
        store.add(new)
        return len(store.between([keys], [keys + 1])[1])

    return step


def mapped(rows: np.ndarray, place: Path) -> Step:
    store = SortedBlocks(WIDTH, 2, 2)
    store.replace(rows)
    size = store.pool.nbytes
    with open(place / "pool", "w+b") as file:
        os.posix_fallocate(file.fileno(), 0, size)
        held = mmap.mmap(file.fileno(), size)
    pool = np.frombuffer(held, dtype=np.int64).reshape(store.pool.shape)
    pool[:] = store.pool
    store.pool = pool
    steps = 0

    def step(new: np.ndarray, keys: np.ndarray) -> int:
        nonlocal steps
        steps += 1
        if steps % 20 == 0:
            held.madvise(mmap.MADV_DONTNEED)
        store.add(new)
        return len(store.between([keys], [keys + 1])[1])

    held.madvise(mmap.MADV_DONTNEED)
    return step


def lmdb(rows: np.ndarray, place: Path) -> Step:
    import lmdb

    store = lmdb.open(str(place), map_size=2**36, sync=False, writemap=True)
    with store.begin(write=True) as transaction, transaction.cursor() as cursor:
        cursor.putmulti([(KEY.pack(*row[:2]), VALUE.pack(*row[2:])) for row in rows.tolist()], append=True)

    def step(new: np.ndarray, keys: np.ndarray) -> int:
        found = 0
        with store.begin(write=True) as transaction, transaction.cursor() as cursor:
            for row in new.tolist():
                cursor.put(KEY.pack(*row[:2]), VALUE.pack(*row[2:]))
            for key in keys.tolist():
                end = KEY.pack(key + 1, 0)
                if cursor.set_range(KEY.pack(key, 0)):
                    for at in cursor.iternext(keys=True, values=False):
                        if at >= end:
                            break
                        found += 1
        return found

    return step


def rocksdb(rows: np.ndarray, place: Path) -> Step:
    from rocksdict import Options, Rdict, WriteBatch

    options = Options(raw_mode=True)
    store = Rdict(str(place), options)
    for first in range(0, len(rows), 100_000):
        batch = WriteBatch(raw_mode=True)
        for row in rows[first : first + 100_000].tolist():
            batch.put(KEY.pack(*row[:2]), VALUE.pack(*row[2:]))
        store.write(batch)
    store.flush()

    def step(new: np.ndarray, keys: np.ndarray) -> int:
        batch = WriteBatch(raw_mode=True)
        for row in new.tolist():
            batch.put(KEY.pack(*row[:2]), VALUE.pack(*row[2:]))
        store.write(batch)
        found, cursor = 0, store.iter()
        for key in keys.tolist():
            end = KEY.pack(key + 1, 0)
            cursor.seek(KEY.pack(key, 0))
            while cursor.valid() and cursor.key() < end:
                found += 1
                cursor.next()
        return found

    return step


def duckdb(rows: np.ndarray, place: Path) -> Step:
    import duckdb
    import polars as pl

    store = duckdb.connect(str(place / "db"), config={"threads": 1})
    names = ["g", "t", "a", "b", "c"]
    store.register("frame", pl.DataFrame(rows, schema=names))
    store.execute("CREATE TABLE rows AS SELECT * FROM frame")
    store.execute("CREATE INDEX by_key ON rows (g)")

    def step(new: np.ndarray, keys: np.ndarray) -> int:
        store.register("more", pl.DataFrame(new, schema=names))
        store.register("wanted", pl.DataFrame({"g": np.unique(keys)}))
        store.execute("INSERT INTO rows SELECT * FROM more")
        return len(store.execute("SELECT rows.* FROM rows JOIN wanted USING (g) ORDER BY g, t").pl())

    return step


STORES = {f.__name__: f for f in (blocks, mapped, lmdb, rocksdb, duckdb)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--only", default=",".join(STORES))
    given = parser.parse_args()
    for name in given.only.split(","):
        if os.fork() == 0:  # memory is that of one store
            measure(name, given.rows, given.steps)
            os._exit(0)
        os.wait()


def measure(name: str, rows: int, steps: int) -> None:
    random = np.random.default_rng(7)
    keys = max(1, rows // 10)
    place = Path(tempfile.mkdtemp())
    try:
        began = time.perf_counter()
        step = STORES[name](sorted_rows(random, rows, keys), place)
        loaded = time.perf_counter() - began
        work = [(sorted_rows(random, CHUNK, keys), np.sort(random.integers(0, keys, CHUNK))) for _ in range(steps + 5)]
        for new, wanted in work[:5]:
            step(new, wanted)
        began, cpu = time.perf_counter(), time.process_time()
        found = sum(step(new, wanted) for new, wanted in work[5:])
        wall, cpu = (time.perf_counter() - began) / steps * 1e3, (time.process_time() - cpu) / steps * 1e3
        disk = sum(file.stat().st_blocks * 512 for file in place.rglob("*") if file.is_file()) / 2**20
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
        print(
            f"{name:8} {rows:>12,} rows: {wall:8.2f} ms a step ({cpu:.2f} of CPU), {found / steps:,.0f} rows read, "
            f"loaded in {loaded:.1f} s, resident {resident:,.0f} MiB, on disk {disk:,.0f} MiB",
            flush=True,
        )
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
