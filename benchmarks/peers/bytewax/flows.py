"""The questions as dataflows. Windows are Bytewax's own; what has no operator is Python with state (`logics`)."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import auctions
import bytewax.operators as op
from auctions import NEXMARK
from bytewax.dataflow import Dataflow, Stream
from bytewax.operators.windowing import EventClock, SlidingWindower, TumblingWindower, Windower, fold_window
from ends import Clock, File, Files, Row
from logics import Joined, Matched, Slid
from peers.parameters import DELAY, HOP, WINDOW

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
LENGTH, STEP = timedelta(seconds=WINDOW), timedelta(seconds=HOP)

COLUMNS = {
    "hopping": ("k", "start", "end", "n", "s", "a", "m"),
    "tumbling": ("k", "start", "end", "n", "s", "a", "m"),
    "join": ("vs", "ve", "k", "v", "v_right"),
    "sliding": ("vs", "k", "s"),
    "pattern": ("vs", "ve", "k", "first", "second"),
}
STREAMS = {"join": ("left", "right")}
LOGICS: dict[str, Any] = {"join": Joined, "sliding": Slid, "pattern": Matched}


def flow(name: str, folder: Path, out: Path) -> tuple[Dataflow, Clock]:
    dataflow, clock = Dataflow(name), Clock()
    if name in NEXMARK:
        op.output("out", NEXMARK[name](dataflow, folder, clock), File(out, auctions.COLUMNS[name]))
        return dataflow, clock
    streams = STREAMS.get(name, ("events",))
    read = [op.input(stream, dataflow, Files(folder / stream, clock)) for stream in streams]
    rows = windows(read[0], WINDOWERS[name]) if name in WINDOWERS else with_state(name, read)
    op.output("out", rows, File(out, COLUMNS[name]))
    return dataflow, clock


def with_state(name: str, read: list[Stream[Row]]) -> Stream[Row]:
    keyed = [
        op.map(f"key_{side}", stream, lambda row, side=side: (str(row[1]), (row[0], side, row[2])))
        for side, stream in enumerate(read)
    ]
    merged = op.merge("merge", *keyed) if len(keyed) > 1 else keyed[0]
    found = op.stateful_batch("find", merged, LOGICS[name])
    return op.map("row", found, lambda item: LOGICS[name].row(int(item[0]), item[1]))


# --- windows -------------------------------------------------------------------------------------------------------

WINDOWERS: dict[str, Windower[Any]] = {
    "hopping": SlidingWindower(length=LENGTH, offset=STEP, align_to=EPOCH),
    "tumbling": TumblingWindower(length=LENGTH, align_to=EPOCH),
}
CLOCK: EventClock[Any] = EventClock(
    ts_getter=lambda item: item[0],
    wait_for_system_duration=timedelta(seconds=DELAY),
    now_getter=lambda: EPOCH,
    to_system_utc=lambda _: None,
)
Sums = tuple[int, float, float]


def windows(read: Stream[Row], windower: Windower[Any]) -> Stream[Row]:
    keyed = op.map("key", read, lambda row: (str(row[1]), (EPOCH + timedelta(microseconds=row[0]), row[2])))
    folded = fold_window("fold", keyed, CLOCK, windower, nothing, add, merge, ordered=False)
    return op.map("row", folded.down, lambda item: window_row(windower, int(item[0]), *item[1]))


def nothing() -> Sums:
    return 0, 0.0, float("-inf")


def add(sums: Sums, item: tuple[datetime, float]) -> Sums:
    return sums[0] + 1, sums[1] + item[1], max(sums[2], item[1])


def merge(one: Sums, other: Sums) -> Sums:
    return one[0] + other[0], one[1] + other[1], max(one[2], other[2])


def window_row(windower: Windower[Any], key: int, number: int, sums: Sums) -> Row:
    """Windows are numbered from the one that begins at EPOCH."""
    step = windower.offset if isinstance(windower, SlidingWindower) else windower.length
    start = number * (step // timedelta(microseconds=1))
    return key, start, start + WINDOW * SECOND, sums[0], sums[1], sums[1] / sums[0], sums[2]
