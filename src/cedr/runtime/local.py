"""The local runtime: runs a query over given data in this process."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from cedr.columnar.chunk import Chunk, empty
from cedr.columnar.tally import MANY_ROWS, Tally
from cedr.plan.analysis import analyse
from cedr.plan.fragment import Fragment
from cedr.plan.optimizer import optimize
from cedr.runtime.engine import Engine
from cedr.runtime.result import Result
from cedr.runtime.why_waiting import WhyWaiting, held_rows, why_waiting
from cedr.sources.calendars import calendar_in, check_calendar
from cedr.sources.ingest import Clock, Ingest, wall_clock
from cedr.sources.late_rows import in_user_times
from cedr.sources.source_status import source_status
from cedr.temporal.errors import QueryError, StreamError
from cedr.temporal.time import INF

CHUNK_SIZE = 50_000


class LocalRun:
    """One run of a fragment: feeds the engine and collects its output."""

    def __init__(
        self,
        fragment: Fragment,
        chunk_size: int = CHUNK_SIZE,
        patience: int = MANY_ROWS,
        clock: Clock = wall_clock,
    ) -> None:
        if chunk_size < 1:
            raise QueryError(f"chunk_size is {chunk_size}; a chunk has at least one row")
        self.engine = Engine(fragment)
        self.chunk_size, self.calendar, query = chunk_size, calendar_in([fragment]), fragment.query
        self.ingests = {name: Ingest(source, clock, query) for name, source in fragment.sources.items()}
        self.tally = Tally(fragment.schema, patience)
        self.late: list[pl.DataFrame] = []
        self.closed = False

    def steps(self, data: Any, close: bool) -> Iterator[Chunk]:
        """The output after each chunk of input, in turn over the sources."""
        try:
            for name, chunk in self._arrivals(data):
                yield self.push(name, chunk)
        except StreamError as e:
            raise in_user_times(e, self.time_type()) from None
        if close:
            self.closed = True
            for name, ingest in self.ingests.items():
                yield self.push(name, empty(ingest.source.schema, INF))

    def push(self, source: str, chunk: Chunk) -> Chunk:
        out = self.engine.push(source, chunk).without_files()
        self.tally.add(out)
        late = [self.engine.take_late(), *(i.late.take() for i in self.ingests.values())]
        self.late += [frame for frame in late if frame.height]
        return out

    def _arrivals(self, data: Any) -> Iterator[tuple[str, Chunk]]:
        if isinstance(data, Iterator):
            for item in data:
                yield from self._arrivals(item)
            return
        parts = self._by_source(data)
        feeds = {name: self.ingests[name].chunks(part, self.chunk_size) for name, part in parts.items()}
        while feeds:
            for name in list(feeds):
                chunk = next(feeds[name], None)
                check_calendar(self.calendar, name, self.ingests[name].time_type)
                if chunk is None:
                    del feeds[name]
                else:
                    yield name, chunk

    def _by_source(self, data: Any) -> dict[str, Any]:
        names = list(self.ingests)
        if not isinstance(data, Mapping):
            if len(names) == 1:
                return {names[0]: data}
            example = ", ".join(f'"{name}": ...' for name in names)
            raise QueryError(f"the query reads {len(names)} sources; give the data of each: run({{{example}}})")
        if unknown := [name for name in data if name not in self.ingests]:
            raise QueryError(f"the query has no source {unknown[0]!r}; its sources are {', '.join(map(repr, names))}")
        return dict(data)

    def result(self, chunks: list[Chunk]) -> Result:
        """The answer so far, and these chunks as its changelog."""
        late = pl.concat(self.late, how="diagonal_relaxed") if self.late else pl.DataFrame()
        return Result(
            self.engine.schema,
            chunks,
            self.tally.copy(),
            self.time_type(),
            late,
            self.engine.metrics(),
            self.why_waiting,
        )

    def why_waiting(self) -> WhyWaiting:
        """What holds the query back now."""
        fragment = self.engine.fragment
        statuses = [source_status(ingest.progress) for ingest in self.ingests.values()]
        missing = analyse(optimize(fragment.query, fragment.rules).plan) if fragment.query else ()
        return why_waiting(
            fragment.sources,
            [] if self.closed else statuses,
            held_rows(fragment.steps, self.engine.metrics()),
            sum(ingest.late.counts["from_the_future"] for ingest in self.ingests.values()),
            [text for finding in missing for text in finding.missing],
            self.time_type(),
        )

    def time_type(self) -> pl.DataType:
        """Times are shown in the type of the sources; different types cannot be compared."""
        kinds = {name: i.time_type for name, i in self.ingests.items() if i.time_type is not None}
        if len({isinstance(kind, pl.Datetime) for kind in kinds.values()}) > 1:
            raise QueryError(
                f"the sources use different time types ({', '.join(f'{n}: {k}' for n, k in kinds.items())}); "
                "convert all of them to timestamps or to whole numbers"
            )
        return next(iter(kinds.values()), pl.Int64())


def run(fragment: Fragment, data: Any, *, chunk_size: int = CHUNK_SIZE, close: bool = True) -> Result:
    """The answer to all the data."""
    local = LocalRun(fragment, chunk_size, patience=INF)  # the chunks are kept in any case
    chunks = list(local.steps(data, close))
    result = local.result(chunks)
    result.warn_of_late(stacklevel=3)
    return result


def updates(fragment: Fragment, data: Any, *, chunk_size: int = CHUNK_SIZE, close: bool = True) -> Iterator[Result]:
    """A result after each chunk: what this chunk changed, and the answer so far."""
    local = LocalRun(fragment, chunk_size)
    result = None
    for chunk in local.steps(data, close):
        yield (result := local.result([chunk]))
    if result is not None:
        result.warn_of_late(stacklevel=2)
