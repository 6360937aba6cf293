"""The rows of file sources, read in this process like cedr's file source on Spark reads them.

Files that exist at the start are read in order, with as many per batch as a micro-batch on Spark would take, so that
the same rows are late. Rows that cannot be read are an error, or with `on_bad = "late"` late rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from cedr.columnar.chunk import FILE
from cedr.job.job import Job
from cedr.job.sources import JobSource
from cedr.plan.nodes.source import Source
from cedr.plan.real_lengths import check_lengths as lengths_need_a_unit
from cedr.sources.event_time import shown_type
from cedr.sources.files import clock
from cedr.sources.files.columns import check_source
from cedr.sources.files.listing import Stamp, in_order, listed, stamp
from cedr.sources.files.reading import Planner, pieces, splits
from cedr.sources.files.settings import Files, with_format
from cedr.sources.files.unreadable import Unreadable
from cedr.sources.user_times import TimeType


@dataclass
class Rows:
    """The rows of one source; `late` collects what could not be read."""

    source: Source
    files: Files
    late: list[pl.DataFrame] = field(default_factory=list)

    @staticmethod
    def of(made: JobSource) -> "Rows":
        """Only files can be read without Spark."""
        if made.files is None:
            raise made.section.mistake(
                f"only files can be read without Spark, and this source has {made.origin}; run it without --local",
                made.origin,
            )
        with made.section.about(f"files({made.files.path!r})", key="files"):
            settings = made.files if made.files.format else with_format(made.files, sorted(listed(made.files)))
        with made.section.about(f"source {made.name!r} from files({made.files.path!r})", key="columns"):
            check_source(made.source, settings)
        return Rows(made.source, settings)

    def batches(self) -> Iterator[pl.DataFrame]:
        """The rows of each micro-batch, as one table."""
        found = self._found()
        size = self.files.max_files or max(len(found), 1)
        for start in range(0, len(found), size):
            if frames := list(self.frames(found[start : start + size])):
                named = [frame.with_columns(pl.col(FILE).cast(pl.String)) for frame in frames]  # splits have own types
                yield pl.concat(named, how="vertical_relaxed")

    def frames(self, found: list[tuple[str, Stamp]]) -> Iterator[pl.DataFrame]:
        for split in splits([(0, self._planner.plan(found, self._written()))]):
            for piece in pieces(split, self.files, self.source):
                if not isinstance(piece, Unreadable):
                    yield piece
                elif self.files.on_bad == "raise":
                    raise piece.error()
                else:
                    self.late.append(piece.late(self.source))

    def peek(self) -> None:
        """Read the first rows, so that a wrong type or name is found before the query starts."""
        next(self.frames(self._found()[:1]), None)

    def time_type(self) -> TimeType | None:
        """The type of times; None when no file exists yet that determines it."""
        written = self._written()
        return None if written is None else shown_type(self.source, clock.as_type(written))

    def _written(self) -> str | None:
        """How times are written: the same for all files, determined by the first one that has times."""
        return self._planner.clock([path for path, _ in self._found()])

    @property
    def _planner(self) -> Planner:
        return Planner(self.files, self.source, 1)

    def _found(self) -> list[tuple[str, Stamp]]:
        found = {path: at for path in listed(self.files) if (at := stamp(path))}
        return [(path, found[path]) for path in in_order(found, self.files.order)]


def peek(made: JobSource) -> None:
    """Read the first rows of the first file, if there is one; otherwise the format must be given."""
    if made.files is not None:
        rows = Rows.of(made)
        with made.section.about(key="files"):
            rows.peek()


def check_lengths(job: Job, made: JobSource) -> None:
    """Durations with a unit require times that have one."""
    if made.files is not None:
        kind = Rows.of(made).time_type()
    else:
        kind = pl.Int64() if made.times == "number" and not made.source.unit and made.origin != "rate" else None
    if kind is None or isinstance(kind, pl.Datetime):
        return
    for stream in job.streams.values():
        with made.section.about(f"source {made.name!r}", key="vs"):
            if made in job.read_by(stream):
                lengths_need_a_unit(made.source, stream.plan)
