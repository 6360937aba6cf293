"""`why_waiting`: what holds a running query back.

Combines the progress of each source, the rows each operator holds (its metrics), the number of late rows from the
future, and what the plan lacks (`plan.analysis`) into sentences and two tables.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import polars as pl

from cedr.plan.fragment import PhysicalStep
from cedr.plan.nodes import Align, Sort
from cedr.plan.nodes.source import Source
from cedr.sources.source_status import PartitionStatus, SourceStatus
from cedr.sources.user_times import TimeType, as_user_times
from cedr.temporal.duration import show_duration
from cedr.temporal.time import INF, MIN, show

FAR_AHEAD = timedelta(days=1)
"""A source whose progress is this far ahead of the clock was moved by a row from the future."""


class Held(NamedTuple):
    """The rows an operator holds, and the progress of its input."""

    operator: str
    rows: int
    progress: int
    waits: bool = False
    """It holds them back, rather than remembering them."""


@dataclass(frozen=True)
class WhyWaiting:
    """Prints as sentences and tables.

    reasons     what holds progress back, in sentences
    sources     for each source the partitions or keys that are slowest or ahead: final up to when, highest start, and
                time of the last report
    operators   the operators that hold rows
    """

    reasons: tuple[str, ...]
    sources: pl.DataFrame
    operators: pl.DataFrame

    def __str__(self) -> str:
        tables = [aligned_columns(frame) for frame in (self.sources, self.operators) if frame.height]
        return "\n\n".join(["\n".join(self.reasons), *tables])


def why_waiting(
    sources: Mapping[str, Source],
    statuses: Iterable[SourceStatus],
    held: Iterable[Held],
    from_the_future: int,
    missing: Iterable[str],
    time_type: TimeType,
) -> WhyWaiting:
    sentences = Sentences(time_type)
    by_source = {s.source: s for s in statuses}
    active = [s for name in sources if (s := by_source.get(name)) is not None and s.cti != INF]
    holding = [h for h in held if h.rows]
    reasons = [text for s in active for text in sentences.of_source(sources[s.source], s)]
    reasons += [sentences.of_operator(h) for h in holding if h.waits]
    if from_the_future:
        reasons.append(f"{count_text(from_the_future, 'row')} from the future; see the late rows")
    if active:
        reasons += [f"missing: {text}" for text in dict.fromkeys(missing)]
    return WhyWaiting(
        tuple(reasons) or ("nothing waits: all sources have ended",),
        members_table(sources, active, time_type),
        pl.DataFrame(
            [(h.operator, h.rows, sentences.time(h.progress) if h.progress != MIN else None) for h in holding],
            schema={"operator": pl.String, "rows": pl.Int64, "cti": pl.String},
            orient="row",
        ),
    )


def held_rows(steps: Iterable[PhysicalStep], metrics: pl.DataFrame) -> list[Held]:
    """The rows that operators hold, from a table of metrics, which may have several rows for one operator."""
    by_step = metrics.group_by("step").agg(pl.col("state_rows").sum(), pl.col("cti_in").fill_null(MIN).min())
    by_number = {step: (rows, cti) for step, rows, cti in by_step.iter_rows()}
    return [
        Held(step.node.describe(), *by_number[number], isinstance(step.node, Align | Sort))
        for number, step in enumerate(steps)
        if number in by_number
    ]


@dataclass(frozen=True)
class Sentences:
    """Sentences with times in the user's type."""

    time_type: TimeType

    def of_source(self, source: Source, s: SourceStatus) -> Iterator[str]:
        if not s.slowest:
            yield f"source {s.source!r} has not reported anything yet"
            return
        slow = next((m for m in s.slowest if not given_up(source, s, m)), s.slowest[0])
        yield self._slowest_text(source, s, slow)
        for m in s.slowest:
            if given_up(source, s, m):
                longer = f"{silence_text(s, m)}, longer than {show_duration(source.idle or 0)}"
                yield f"{m.name} of source {s.source!r} no longer counts: it has been silent for {longer}"
        for m in s.ahead:
            yield (
                f"{m.name} of source {s.source!r} is far ahead: its highest start is {self.time(m.highest)}, "
                f"that of most others is near {self.time(s.usual)}"
            )
        if self._ahead_of_clock(s):
            yield (
                f"source {s.source!r} is ahead of the clock, at {self.time(s.cti)}: a row from the future has moved it "
                'and makes others late; declare max_ahead="1h" for its progress, or progress by a column if clocks '
                "differ by key"
            )

    def _slowest_text(self, source: Source, s: SourceStatus, slow: PartitionStatus) -> str:
        reached = f"source {s.source!r} has progressed to {self.time(s.cti)}" if s.cti != MIN else ""
        if not slow.name:
            behind = f", {self.length(source.delay)} behind its highest start" if source.delay else ""
            return reached + behind if reached else f"source {s.source!r} has not reported any progress"
        came = f"progressed to {self.time(slow.promised)}" if slow.promised != MIN else "not reported any progress"
        silent = f"; its last report was at {wall_clock_text(slow.at)}, {silence_text(s, slow)} before the others"
        of = f"{slow.name} has {came} and is the slowest of {s.members}{silent if s.now > slow.at else ''}"
        if source.progress_by and source.idle is None:
            return f"source {s.source!r} has separate progress for each {', '.join(source.progress_by)}: {of}"
        return f"{reached or f'source {s.source!r} has no progress'}: {of}"

    def of_operator(self, h: Held) -> str:
        reached = f"progressed to {self.time(h.progress)}" if h.progress != MIN else "no CTI"
        return f"{h.operator} holds back {count_text(h.rows, 'row')}; its input has {reached}"

    def _ahead_of_clock(self, s: SourceStatus) -> bool:
        limit = s.now + FAR_AHEAD // timedelta(microseconds=1)
        return isinstance(self.time_type, pl.Datetime) and bool(s.now) and limit < s.cti < INF

    def time(self, time: int) -> str:
        if time in (INF, MIN) or not isinstance(self.time_type, pl.Datetime):
            return show(time)
        return str(as_user_times(pl.DataFrame({"t": [time]}), ["t"], self.time_type)["t"][0])

    def length(self, length: int) -> str:
        return show_duration(length) if isinstance(self.time_type, pl.Datetime) else str(length)


def given_up(source: Source, s: SourceStatus, member: PartitionStatus) -> bool:
    return source.idle is not None and s.now - member.at > source.idle


def silence_text(s: SourceStatus, member: PartitionStatus) -> str:
    return f"{(s.now - member.at) / 1_000_000:.1f}s"


def wall_clock_text(microseconds: int) -> str:
    """A wall-clock time, unless a test uses another clock."""
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def count_text(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def members_table(sources: Mapping[str, Source], statuses: Iterable[SourceStatus], time_type: TimeType) -> pl.DataFrame:
    rows = [
        (s.source, m.name, m.promised, m.highest, m.at // 1_000_000, note)
        for s in statuses
        for note, members in (("slowest", s.slowest), ("ahead", s.ahead))
        for m in members
        if note == "ahead" or m not in s.ahead
    ]
    schema = {"source": pl.String, "of": pl.String, "final": pl.Int64, "highest": pl.Int64, "reported": pl.Int64}
    frame = pl.DataFrame(rows, schema={**schema, "note": pl.String}, orient="row")
    shown = as_user_times(frame, ["final", "highest"], time_type)
    return shown.with_columns(pl.from_epoch("reported").dt.replace_time_zone("UTC"))


def aligned_columns(frame: pl.DataFrame) -> str:
    """Columns next to each other, as wide as necessary."""
    rows = [frame.columns, *([("" if v is None else str(v)) for v in row] for row in frame.iter_rows())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines)
