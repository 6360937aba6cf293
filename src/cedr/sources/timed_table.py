"""A table on its way in: its rows with the progress told between them, and where it has to be cut."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.promises import NONE, Promises
from cedr.sources.punctuation_rows import Alike
from cedr.temporal.element import ExternalCti

Externals = tuple[ExternalCti, ...]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class TimedTable:
    """The rows of a table that say something, and the progress told between them.

    `told[i]` is the progress told before row i, the last one that told before the end.
    """

    rows: pl.DataFrame
    told: Times
    partitions: pl.Series | None
    external: Externals
    punctuations: list[Alike]
    files: tuple[str, ...] = ()
    """As in a chunk."""

    def cuts(self, chunk_size: int, known: int) -> Iterator[tuple[int, int, Promises]]:
        """Pieces of at most so many rows, each with the punctuations told in it.

        A piece ends before a row that breaks a promise told in it, so that the promise is known when the row comes.
        `known` is the progress known before.
        """
        slices = [
            (start, min(start + chunk_size, self.rows.height))
            for start in range(0, max(self.rows.height, 1), chunk_size)
        ]
        if not self.punctuations and (self.partitions is not None or self.told[-1] <= known):
            yield from ((start, end, NONE) for start, end in slices)
            return
        below, broken, heard = *self._broken(), 0
        for start, end in slices:
            while True:
                rest = slice(start, end)
                cuts = np.flatnonzero((below[rest] & (self.told[rest] > known)) | (broken[rest] >= heard))
                stop = start + int(cuts[0]) if len(cuts) else end
                yield start, stop, self._promises(heard, stop)
                heard = stop + 1
                if not len(cuts):
                    break
                known, start = max(known, int(self.told[stop])), stop

    def _broken(self) -> tuple[Mask, Times]:
        """Which rows lie below a CTI told before, and for each the place of the last punctuation about it, if it breaks
        one; else -1. CTIs of partitions count at the end of the table only."""
        sync = Chunk(self.rows).sync
        below = sync < self.told[:-1] if self.partitions is None else np.zeros(len(sync), dtype=np.bool_)
        broken = np.full(len(sync), -1)
        for punctuations in self.punctuations:
            payload = self.rows.select(punctuations.values.columns)
            np.maximum(broken, punctuations.broken(payload, sync), out=broken)
        return below, broken

    def _promises(self, first: int, last: int) -> Promises:
        promises = NONE
        for punctuations in self.punctuations:
            promises = promises.plus(punctuations.told(first, last))
        return promises
