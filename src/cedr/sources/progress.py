"""How far a source has come.

Progress is told (a CTI, for the whole source or for one of its partitions), counted (external CTIs, where nobody later
counts them) or derived (no row comes later than `delay` after a higher start of the same partition). A source is as far
as the last of its partitions. A partition from which nothing was heard for the idle time holds nobody back; when it
speaks again, what it says below the progress made is late.

It may also be told about parts of the source (punctuations), and derived for each value of some columns by itself
(`per`); such progress is promises. About the whole, `per` leads to progress only with an idle time: as far as the last
of the values that were heard of within it.

Times of hearing are part of what is told, never read here, so the same words always lead to the same progress.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import Times
from cedr.columnar.promises import BEFORE, NONE, Promises
from cedr.operators.external_ctis import ExternalCtis
from cedr.plan.nodes.source import Source
from cedr.sources.keys import AT, HIGHEST, Keys
from cedr.storage.plain import allowed
from cedr.temporal.element import ExternalCti
from cedr.temporal.time import INF, MIN

SILENT = "_silent"
Partition = Hashable
"""The value of the partition column; None for the whole source."""


@allowed
@dataclass(frozen=True)
class ProgressReport:
    """What a piece of a source says about progress.

    highest    of each partition the highest start it has
    ctis       the CTI told of each partition; None stands for the whole source
    external   external CTIs, and in `syncs` the sync times of all rows they count
    at         when it was heard, in microseconds of some clock
    keys       the values of the columns of `per`, each once, with its highest start
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
    """What is known of one partition."""

    highest: int = MIN
    cti: int = MIN
    at: int = 0


class Progress:
    """`cti` is the promise that holds for the whole source. `counts` says whether external CTIs are counted here."""

    def __init__(self, source: Source, counts: bool = False) -> None:
        self.source = source
        self.cti = MIN
        self.partitions: dict[Partition, PartitionProgress] = {}
        self.now = 0
        self.keys = Keys({name: source.schema[name] for name in source.per}, self.delay or 0) if source.per else None
        self._told = NONE
        """Punctuations since promises were asked for."""
        self.counted = ExternalCtis() if counts else None
        self.broken: list[tuple[ExternalCti, Any, str]] = []
        """External CTIs that cannot be right, each with a reason and a sentence."""

    @property
    def delay(self) -> int | None:
        """Rows in order have no delay."""
        return 0 if self.source.ordered and self.source.delay is None else self.source.delay

    def hear(self, told: Iterable[ProgressReport]) -> int:
        """The promise that holds after all this."""
        whole = MIN
        for said in told:
            self.now = max(self.now, said.at)
            for partition in {**said.highest, **said.ctis}:
                if partition is None and self.source.partition is not None:
                    whole = max(whole, said.ctis.get(None, MIN))
                else:
                    self._hear(partition, said)
            if self.keys is not None and said.keys is not None:
                self.keys.hear(said.keys, said.at)
            self._told = self._told.plus(said.promises)
            whole = max(whole, self._count(said))
        self.cti = max(self.cti, whole, self._slowest(), self._slowest_key())
        if self.counted is not None:
            self.counted.forget(self.cti)
        return self.cti

    def take_promises(self) -> Promises:
        """What is promised about parts of the source since the last time, beside the CTI."""
        told, self._told = self._told.after(self.cti), NONE
        if self.keys is None:
            return told
        derived = self.keys.take_promises(self.cti)
        if self.source.idle is not None:
            self.keys.forget(self.cti, self.now - self.source.idle)
        return told.plus(derived)

    def _hear(self, partition: Partition, said: ProgressReport) -> None:
        heard = self.partitions.setdefault(partition, PartitionProgress())
        heard.highest = max(heard.highest, said.highest.get(partition, MIN))
        heard.cti = max(heard.cti, said.ctis.get(partition, MIN))
        heard.at = max(heard.at, said.at)

    def _slowest(self) -> int:
        """The promise all partitions have made that are not idle."""
        idle = self.source.idle
        active = [h for h in self.partitions.values() if idle is None or h.at >= self.now - idle]
        return min((max(h.cti, self._derived(h.highest)) for h in active), default=MIN)

    def _slowest_key(self) -> int:
        """The promise all values have made that are not idle; without an idle time new ones may come at any time."""
        if self.keys is None or self.source.idle is None:
            return MIN
        return self.keys.slowest(self.now - self.source.idle)

    def _derived(self, highest: int) -> int:
        if self.delay is None or highest in (MIN, INF):
            return MIN
        return max(highest - self.delay, MIN)

    def _count(self, said: ProgressReport) -> int:
        if self.counted is None:
            return MIN
        if said.syncs is not None:
            self.counted.receive(said.syncs[said.syncs >= self.cti])
        for external in said.external:
            if (why := self.counted.broken(external)) is not None:
                self.broken.append((external, *why))
            else:
                self.counted.add(external)
        return self.counted.promise(self.cti)

    def take_broken(self) -> list[tuple[ExternalCti, Any, str]]:
        broken, self.broken = self.broken, []
        return broken

    def heard(self, most: int | None = None, *, furthest: bool = False) -> pl.DataFrame:
        """What was heard of each value of `per`, or else of each partition, the slowest or the furthest ones first.

        `_highest` is its highest start, `_before` the time to which it is settled, `_at` when it was heard of last and
        `_silent` how long ago that was when anything was heard.
        """
        if self.keys is not None:
            found = self.keys.heard(most, furthest=furthest)
        else:
            name = self.source.partition or "partition"
            rows = [(p, h.highest, max(h.cti, self._derived(h.highest)), h.at) for p, h in self.partitions.items()]
            columns = [name, HIGHEST, BEFORE, AT]
            found = pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
            by = [HIGHEST, BEFORE] if furthest else [BEFORE, HIGHEST]
            found = found.sort(by, descending=furthest, maintain_order=True)[:most]
        return found.with_columns((self.now - pl.col(AT)).alias(SILENT))

    def highest(self) -> Times:
        """The highest start of each value of `per`, or else of each partition."""
        if self.keys is not None:
            return self.keys.highest()
        return np.array([h.highest for h in self.partitions.values()], dtype=np.int64)

    def save(self) -> dict[str, Any]:
        heard = {p: (h.highest, h.cti, h.at) for p, h in self.partitions.items()}
        counted = None if self.counted is None else self.counted.save()
        keys = None if self.keys is None else self.keys.save()
        told = {"keys": keys, "told": self._told}
        return {"cti": self.cti, "partitions": heard, "now": self.now, "counted": counted, **told}

    def load(self, state: dict[str, Any]) -> None:
        self.cti, self.now = state["cti"], state["now"]
        self.partitions = {p: PartitionProgress(*values) for p, values in state["partitions"].items()}
        self._told = state["told"]
        if self.keys is not None:
            self.keys.load(state["keys"])
        if self.counted is not None:
            self.counted.load(state["counted"])


def highest_by(values: Times, partitions: pl.Series | None) -> dict[Partition, int]:
    """The highest of each partition; without partitions, of all."""
    if not len(values):
        return {}
    if partitions is None:
        return {None: int(np.max(values))}
    frame = partitions.alias("partition").to_frame().with_columns(value=pl.Series(values))
    return dict(frame.group_by("partition").agg(pl.col("value").max()).iter_rows())
