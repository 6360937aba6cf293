"""How far a source has come.

Progress is told (a CTI, for the whole source or for one of its partitions), counted (external CTIs, where nobody later
counts them) or derived (no row comes later than `delay` after a higher start of the same partition). A source is as far
as the last of its partitions. A partition from which nothing was heard for the idle time holds nobody back; when it
speaks again, what it says below the progress made is late.

Times of hearing are part of what is told, never read here, so the same words always lead to the same progress.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import Times
from cedr.operators.external_ctis import ExternalCtis
from cedr.plan.source import Source
from cedr.temporal.element import ExternalCti
from cedr.temporal.time import INF, MIN

Partition = Hashable
"""The value of the partition column; None for the whole source."""


@dataclass(frozen=True)
class Told:
    """What a piece of a source says about progress.

    highest    of each partition the highest start it has
    ctis       the CTI told of each partition; None stands for the whole source
    external   external CTIs, and in `syncs` the sync times of all rows they count
    at         when it was heard, in microseconds of some clock
    """

    highest: dict[Partition, int] = field(default_factory=dict)
    ctis: dict[Partition, int] = field(default_factory=dict)
    external: tuple[ExternalCti, ...] = ()
    syncs: Times | None = None
    at: int = 0


@dataclass
class Heard:
    """What is known of one partition."""

    highest: int = MIN
    cti: int = MIN
    at: int = 0


class Progress:
    """`cti` is the promise that holds for the whole source. `counts` says whether external CTIs are counted here."""

    def __init__(self, source: Source, counts: bool = False) -> None:
        self.source = source
        self.cti = MIN
        self.partitions: dict[Partition, Heard] = {}
        self.now = 0
        self.counted = ExternalCtis() if counts else None
        self.broken: list[tuple[ExternalCti, Any, str]] = []
        """External CTIs that cannot be right, each with a reason and a sentence."""

    @property
    def delay(self) -> int | None:
        """Rows in order have no delay."""
        return 0 if self.source.ordered and self.source.delay is None else self.source.delay

    @property
    def promises(self) -> bool:
        """Whether this source can ever say anything about progress."""
        return self.delay is not None or self.source.cti is not None or bool(self.source.external)

    def hear(self, told: Iterable[Told]) -> int:
        """The promise that holds after all this."""
        whole = MIN
        for said in told:
            self.now = max(self.now, said.at)
            for partition in {**said.highest, **said.ctis}:
                if partition is None and self.source.partition is not None:
                    whole = max(whole, said.ctis.get(None, MIN))
                else:
                    self._hear(partition, said)
            whole = max(whole, self._count(said))
        self.cti = max(self.cti, whole, self._slowest())
        if self.counted is not None:
            self.counted.forget(self.cti)
        return self.cti

    def _hear(self, partition: Partition, said: Told) -> None:
        heard = self.partitions.setdefault(partition, Heard())
        heard.highest = max(heard.highest, said.highest.get(partition, MIN))
        heard.cti = max(heard.cti, said.ctis.get(partition, MIN))
        heard.at = max(heard.at, said.at)

    def _slowest(self) -> int:
        """The promise all partitions have made that are not idle."""
        idle = self.source.idle
        active = [h for h in self.partitions.values() if idle is None or h.at >= self.now - idle]
        return min((max(h.cti, self._derived(h.highest)) for h in active), default=MIN)

    def _derived(self, highest: int) -> int:
        if self.delay is None or highest in (MIN, INF):
            return MIN
        return max(highest - self.delay, MIN)

    def _count(self, said: Told) -> int:
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

    def save(self) -> dict[str, Any]:
        heard = {p: (h.highest, h.cti, h.at) for p, h in self.partitions.items()}
        counted = None if self.counted is None else self.counted.save()
        return {"cti": self.cti, "partitions": heard, "now": self.now, "counted": counted}

    def load(self, state: dict[str, Any]) -> None:
        self.cti, self.now = state["cti"], state["now"]
        self.partitions = {p: Heard(*values) for p, values in state["partitions"].items()}
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
