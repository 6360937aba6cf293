"""The progress of a source.

Progress is reported (a CTI, for the whole source or for one of its partitions), counted (external CTIs, unless a later
stage counts them) or derived (no row arrives later than `delay` after a higher start of the same partition). A source
has progressed as far as the slowest of its partitions. A partition that has not reported for the idle time does not
count; when it reports again, its rows below the progress of the source are late.

Progress may also be reported for parts of the source (punctuations), and derived for each value of some columns
(`progress_by`); this yields promises. It leads to progress of the whole source only with an idle time: as far as the
slowest of the values that have reported within it.

The times of reports are part of the reports and never read from a clock here, so that equal reports lead to equal
progress.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import Times
from cedr.columnar.promises import BEFORE, NONE, Promises
from cedr.columnar.state import NUMBER, PART, PROMISES, TRANSIENT, Stateful, columns, each, fields
from cedr.operators.external_ctis import ExternalCtis
from cedr.plan.nodes.source import Source
from cedr.sources.keys import AT, HIGHEST, KeyProgress
from cedr.storage.plain import allowed
from cedr.temporal.element import ExternalCti
from cedr.temporal.time import INF, MIN

SILENT = "_silent"
Partition = Hashable
"""The value of the partition column; None for the whole source."""


@allowed
@dataclass(frozen=True)
class ProgressReport:
    """The progress that a piece of a source reports.

    highest    the highest start of each partition
    ctis       the reported CTI of each partition; None is the whole source
    external   external CTIs; `syncs` are the sync times of all rows that they count
    at         the time of the report, in microseconds of some clock
    keys       the values of the columns of `progress_by`, each once, with its highest start
    promises   punctuations about parts of the source
    """

    highest: dict[Partition, int] = field(default_factory=dict)
    ctis: dict[Partition, int] = field(default_factory=dict)
    external: tuple[ExternalCti, ...] = ()
    syncs: Times | None = None
    at: int = 0
    keys: pl.DataFrame | None = None
    promises: Promises = NONE


@dataclass
class PartitionProgress:
    """The progress of one partition."""

    highest: int = MIN
    cti: int = MIN
    at: int = 0


class SourceProgress(Stateful):
    """`cti` is the promise for the whole source. `counts`: external CTIs are counted here."""

    state = fields(
        cti=NUMBER,
        partitions=each(columns(PartitionProgress)),
        now=NUMBER,
        keys=PART,
        counted=PART,
        _promises=PROMISES,
        broken=TRANSIENT,
    )

    def __init__(self, source: Source, counts: bool = False) -> None:
        self.source = source
        self.cti = MIN
        self.partitions: dict[Partition, PartitionProgress] = {}
        self.now = 0
        self.keys = (
            KeyProgress({name: source.schema[name] for name in source.progress_by}, self.delay or 0)
            if source.progress_by
            else None
        )
        self._promises = NONE
        """Punctuations since promises were last taken."""
        self.counted = ExternalCtis() if counts else None
        self.broken: list[tuple[ExternalCti, Any, str]] = []
        """External CTIs that cannot be right, each with a reason and a message."""

    @property
    def delay(self) -> int | None:
        """Ordered rows have no delay."""
        return 0 if self.source.ordered and self.source.delay is None else self.source.delay

    def update(self, reports: Iterable[ProgressReport]) -> int:
        """Returns the promise after these reports."""
        whole = MIN
        for report in reports:
            self.now = max(self.now, report.at)
            for partition in {**report.highest, **report.ctis}:
                if partition is None and self.source.partition is not None:
                    whole = max(whole, report.ctis.get(None, MIN))
                else:
                    self._update_partition(partition, report)
            if self.keys is not None and report.keys is not None:
                self.keys.update(report.keys, report.at)
            self._promises = self._promises.plus(report.promises)
            whole = max(whole, self._count(report))
        self.cti = max(self.cti, whole, self._slowest(), self._slowest_key())
        if self.counted is not None:
            self.counted.forget(self.cti)
        return self.cti

    def take_promises(self) -> Promises:
        """New promises about parts of the source since the last call, in addition to the CTI."""
        reported, self._promises = self._promises.after(self.cti), NONE
        if self.keys is None:
            return reported
        derived = self.keys.take_promises(self.cti)
        if self.source.idle is not None:
            self.keys.forget(self.cti, self.now - self.source.idle)
        return reported.plus(derived)

    def _update_partition(self, partition: Partition, report: ProgressReport) -> None:
        progress = self.partitions.setdefault(partition, PartitionProgress())
        progress.highest = max(progress.highest, report.highest.get(partition, MIN))
        progress.cti = max(progress.cti, report.ctis.get(partition, MIN))
        progress.at = max(progress.at, report.at)

    def _slowest(self) -> int:
        """The promise of all partitions that are not idle."""
        idle = self.source.idle
        active = [h for h in self.partitions.values() if idle is None or h.at >= self.now - idle]
        return min((max(h.cti, self._derived(h.highest)) for h in active), default=MIN)

    def _slowest_key(self) -> int:
        """The promise of all values that are not idle; without an idle time new values may arrive at any time."""
        if self.keys is None or self.source.idle is None:
            return MIN
        return self.keys.slowest(self.now - self.source.idle)

    def _derived(self, highest: int) -> int:
        if self.delay is None or highest in (MIN, INF):
            return MIN
        return max(highest - self.delay, MIN)

    def _count(self, report: ProgressReport) -> int:
        if self.counted is None:
            return MIN
        if report.syncs is not None:
            self.counted.receive(report.syncs[report.syncs >= self.cti])
        for external in report.external:
            if (why := self.counted.broken(external)) is not None:
                self.broken.append((external, *why))
            else:
                self.counted.add(external)
        return self.counted.promise(self.cti)

    def take_broken(self) -> list[tuple[ExternalCti, Any, str]]:
        broken, self.broken = self.broken, []
        return broken

    def table(self, limit: int | None = None, *, furthest: bool = False) -> pl.DataFrame:
        """The progress of each value of `progress_by`, or else of each partition, the slowest or the furthest first.

        `_highest` is its highest start, `_before` the promised time, `_at` the time of its last report and `_silent`
        how long that was before the last report of any.
        """
        if self.keys is not None:
            found = self.keys.table(limit, furthest=furthest)
        else:
            name = self.source.partition or "partition"
            rows = [(p, h.highest, max(h.cti, self._derived(h.highest)), h.at) for p, h in self.partitions.items()]
            columns = [name, HIGHEST, BEFORE, AT]
            found = pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
            by = [HIGHEST, BEFORE] if furthest else [BEFORE, HIGHEST]
            found = found.sort(by, descending=furthest, maintain_order=True)[:limit]
        return found.with_columns((self.now - pl.col(AT)).alias(SILENT))

    def highest(self) -> Times:
        """The highest start of each value of `progress_by`, or else of each partition."""
        if self.keys is not None:
            return self.keys.highest()
        return np.array([h.highest for h in self.partitions.values()], dtype=np.int64)


def highest_by(values: Times, partitions: pl.Series | None) -> dict[Partition, int]:
    """The highest value of each partition; without partitions, of all."""
    if not len(values):
        return {}
    if partitions is None:
        return {None: int(np.max(values))}
    frame = partitions.alias("partition").to_frame().with_columns(value=pl.Series(values))
    return dict(frame.group_by("partition").agg(pl.col("value").max()).iter_rows())
