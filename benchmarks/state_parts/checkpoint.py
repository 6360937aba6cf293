"""What a snapshot writes when little has changed since the last, and what recovery reads.

Each query holds `live` tuples in a steady state. A batch is 1 % of them, in ten chunks, and is followed by a snapshot.
Changed are the rows of the state that a batch adds, changes or removes, and their bytes are those that they have in the
saved form: eight for each column of sorted rows, and the columns of new rows of an index. They are counted by comparing
all of the state before and after the batch, not by what the snapshot found. Operators remove rows that are not needed
from time to time, many at once: these count for the batch in which that is done.

Recovery reads the last snapshot, restores an engine, and processes the one batch that came after it; the next batch has
to give the same output. Seconds are of processor time.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from harness import BenchmarkReport, events

from cedr.columnar.blocks import SortedBlocks
from cedr.columnar.chunk import Chunk
from cedr.columnar.index import RowIndex
from cedr.columnar.stored import incremental
from cedr.kernels.forgetting import difference
from cedr.operators.two_layouts import TwoLayouts, stored_blocks
from cedr.runtime.engine import Engine
from cedr.storage.folder import Folder
from cedr.storage.snapshots import Snapshots

BAR = 3.0
CHUNKS = 10
"""Of a batch."""
LIVE, BATCHES = 10_000_000, 40
QUICK_LIVE, QUICK_BATCHES = 100_000, 12

Feed = Callable[[int, int, int, int], Iterator[tuple[str, Chunk]]]
"""Live tuples, first event, events, size of chunks."""


def parts_of(value: Any, seen: set[int], depth: int = 0) -> Iterator[SortedBlocks | RowIndex]:
    """All stores in an operator that are saved; those that follow from others are rebuilt."""
    if id(value) in seen or depth > 6:
        return
    seen.add(id(value))
    if isinstance(value, RowIndex):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from parts_of(item, seen, depth + 1)
    elif type(value).__module__.startswith("cedr.operators"):
        if isinstance(value, TwoLayouts):
            yield from stored_blocks(value)
        for item in vars(value).values():
            yield from parts_of(item, seen, depth + 1)


class ChangedBytes:
    """Compares the state with that of the last time."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.before: dict[str, tuple[int, np.ndarray | None, RowIndex | None]] = {}

    def since(self) -> tuple[int, int]:
        """Bytes of the rows that have changed, and of all rows."""
        changed, total, now = 0, 0, {}
        for number, operator in enumerate(self.engine.operators):
            for n, part in enumerate(parts_of(operator, set())):
                name = f"{number} {n}"
                old = self.before.get(name, (0, None, None))
                if isinstance(part, RowIndex):
                    size, each = len(part), part.nbytes / max(len(part), 1)
                    changed += int(each * (size - old[0] if size >= old[0] else size))
                    total += part.nbytes
                    now[name] = (size, None, part)
                    continue
                flat = part.flat()
                before = np.empty((0, part.width), dtype=np.int64) if old[1] is None else old[1]
                changed += len(difference(before, flat, part.depth)) * 8 * part.width
                total += flat.nbytes
                now[name] = (len(flat), flat, None)
        self.before = now
        return changed, total


def tree_of(engine: Engine, afresh: bool = False) -> Any:
    with incremental(afresh):
        return engine.snapshot()


def measure(report: BenchmarkReport, name: str, make: Callable[[int], Any], feed: Feed, quick: bool) -> None:
    live, batches = (QUICK_LIVE, QUICK_BATCHES) if quick else (events(LIVE), BATCHES)
    place = tempfile.mkdtemp()
    try:
        folder = Folder(place, label="state")
        folder.make()
        measure_in(report, name, make, feed, live, batches, folder, None if quick else BAR)
    finally:
        shutil.rmtree(place)


def measure_in(
    report: BenchmarkReport,
    name: str,
    make: Callable[[int], Any],
    feed: Feed,
    live: int,
    batches: int,
    folder: Folder,
    bar: float | None,
) -> None:
    engine, size, load = make(live).engine(), live // 100, min(max(live // 4, 1), 1_000_000)
    at = -(-(live + live // 10) // load) * load
    for source, chunk in feed(live, 0, at, load):
        engine.push(source, chunk)

    def batch(number: int) -> list[tuple[str, Chunk]]:
        return list(feed(live, at + number * size, size, size // CHUNKS))

    for number in range(batches):  # until state is in blocks, where it is better there
        run_batch(engine, batch(number))
    snapshots, changes = Snapshots(folder), ChangedBytes(engine)
    first = snapshots.write(0, tree_of(engine))
    changes.since()
    written, changed, seconds, total = [], [], [], 0
    for number in range(1, batches + 1):
        run_batch(engine, batch(batches + number - 1))
        more, total = changes.since()
        start = time.process_time()
        size_now = snapshots.write(number, tree_of(engine), lambda: tree_of(engine, afresh=True))
        snapshots.forget_before(number - 1)
        seconds.append(time.process_time() - start)
        written.append(size_now)
        changed.append(more)
    ratios = np.array(written) / np.array(changed)
    title = f"{name}, {live:,} live"
    note = f"{total / 1e6:,.0f} MB of state, {np.mean(changed) / 1e6:,.2f} MB change, {batches} batches"
    report.add(f"{title}, written / changed", sum(written) / sum(changed), "x", bar=bar, at_most=True, note=note)
    middle = f"median: {np.median(ratios):.2f} x of {np.median(changed) / 1e6:,.2f} MB"
    report.add(f"{title}, most of a batch", float(ratios.max()), "x", bar=bar, at_most=True, note=middle)
    report.add(
        f"{title}, seconds of a snapshot", float(np.median(seconds)), "s", note=f"the first: {first / 1e6:,.0f} MB"
    )
    recover(report, title, make(live).engine(), engine, folder, batches, batch)


def recover(
    report: BenchmarkReport,
    title: str,
    other: Engine,
    engine: Engine,
    folder: Folder,
    batches: int,
    batch: Callable[[int], list[tuple[str, Chunk]]],
) -> None:
    log, after = batch(2 * batches), batch(2 * batches + 1)
    run_batch(engine, log)
    start = time.process_time()
    snapshots = Snapshots(folder)
    manifest = snapshots.manifest(batches)
    other.restore(snapshots.read(manifest))
    read = time.process_time() - start
    run_batch(other, log)
    size = sum(place.size for place in manifest.places)
    same = run_batch(other, after) == run_batch(engine, after)
    note = f"{size / 1e6:,.0f} MB read, one batch replayed, then the output is {'the same' if same else 'DIFFERENT'}"
    report.add(f"{title}, seconds to recover", read, "s", note=note)
    if not same:
        raise AssertionError(f"{title}: the recovered engine gives another output")


def run_batch(engine: Engine, chunks: list[tuple[str, Chunk]]) -> list[tuple[int, int]]:
    """Rows of each output chunk, and the hash of their content."""
    found = []
    for source, chunk in chunks:
        rows = engine.push(source, chunk).rows
        found.append((rows.height, int(rows.hash_rows().sum() or 0)))
    return found
