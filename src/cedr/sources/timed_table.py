"""A table as input: its rows with the progress reported between them, and where it must be cut."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.promises import NONE, Promises
from cedr.sources.punctuation_rows import PunctuationGroup
from cedr.temporal.element import ExternalCti

Externals = tuple[ExternalCti, ...]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class TimedTable:
    """The events of a table, and the progress reported between them.

    `ctis[i]` is the progress reported before row i; the last entry is the progress at the end.
    """

    rows: pl.DataFrame
    ctis: Times
    partitions: pl.Series | None
    external: Externals
    punctuations: list[PunctuationGroup]
    files: tuple[str, ...] = ()
    """As in a chunk."""

    def cuts(self, chunk_size: int, cti: int) -> Iterator[tuple[int, int, Promises]]:
        """Pieces of at most `chunk_size` rows, each with its punctuations.

        A piece ends before a row that breaks a promise of the piece, so that the promise is known when the row arrives.
        `cti` is the progress before the table.
        """
        slices = [
            (start, min(start + chunk_size, self.rows.height))
            for start in range(0, max(self.rows.height, 1), chunk_size)
        ]
        if not self.punctuations and (self.partitions is not None or self.ctis[-1] <= cti):
            yield from ((start, end, NONE) for start, end in slices)
            return
        below, broken, first = *self._broken(), 0
        for start, end in slices:
            while True:
                rest = slice(start, end)
                cuts = np.flatnonzero((below[rest] & (self.ctis[rest] > cti)) | (broken[rest] >= first))
                stop = start + int(cuts[0]) if len(cuts) else end
                yield start, stop, self._promises(first, stop)
                first = stop + 1
                if not len(cuts):
                    break
                cti, start = max(cti, int(self.ctis[stop])), stop

    def _broken(self) -> tuple[Mask, Times]:
        """Which rows are below an earlier CTI, and for each row the place of the last punctuation about it, if it
        breaks one, else -1. CTIs of partitions count at the end of the table only."""
        sync = Chunk(self.rows).sync
        below = sync < self.ctis[:-1] if self.partitions is None else np.zeros(len(sync), dtype=np.bool_)
        broken = np.full(len(sync), -1)
        for punctuations in self.punctuations:
            payload = self.rows.select(punctuations.values.columns)
            np.maximum(broken, punctuations.broken(payload, sync), out=broken)
        return below, broken

    def _promises(self, first: int, last: int) -> Promises:
        promises = NONE
        for punctuations in self.punctuations:
            promises = promises.plus(punctuations.promises(first, last))
        return promises
