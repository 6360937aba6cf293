"""The progress of each value of some columns, for sources in which each value progresses independently.

A value is promised up to its highest start minus the delay. This does not affect other values: one that is silent or
whose clock is ahead neither delays others nor makes them late. Only `slowest` considers all of them.
"""

import numpy as np
import polars as pl

from cedr.columnar.index import Ids, RowIndex
from cedr.columnar.promises import BEFORE, NONE, Promises, point_promises
from cedr.columnar.state import ARRAY_PIECES, PART, Stateful, array, fields
from cedr.columnar.times import Times
from cedr.plan.schema import Schema
from cedr.temporal.time import INF, MIN

HIGHEST = "_highest"
"""The column of highest starts in a table of values."""
AT = "_at"
"""The column of times of the last report."""


def highest_of_keys(keys: pl.DataFrame, starts: Times) -> pl.DataFrame:
    """Each value once, with its highest start."""
    return maxima(keys.with_columns(pl.Series(HIGHEST, starts)))


def maxima(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by(pl.exclude(HIGHEST)).agg(pl.col(HIGHEST).max())


class KeyProgress(Stateful):
    """For each value, by its number: its highest start, and when it last reported."""

    state = fields(_index=PART, _highest=array(used=len), _at=array(used=len), _risen=ARRAY_PIECES)

    def __init__(self, schema: Schema, delay: int) -> None:
        self.schema, self.delay = dict(schema), delay
        self._index = RowIndex(self.schema)
        self._highest: Times = np.empty(0, dtype=np.int64)
        self._at: Times = np.empty(0, dtype=np.int64)
        self._risen: list[Ids] = []
        """Values whose highest start has risen since promises were last taken."""

    def __len__(self) -> int:
        return len(self._index)

    def update(self, reported: pl.DataFrame, at: int) -> None:
        """`reported` contains each value once."""
        ids = self._index.ids(reported.select(list(self.schema)))
        self._make_room(len(self._index))
        highest = reported[HIGHEST].to_numpy()
        risen = highest > self._highest[ids]
        self._highest[ids[risen]] = highest[risen]
        self._at[ids] = np.maximum(self._at[ids], at)
        if risen.any():
            self._risen.append(ids[risen])

    def _make_room(self, size: int) -> None:
        if size > len(self._highest):
            more = 2 * size - len(self._highest)
            self._highest = np.append(self._highest, np.full(more, MIN))
            self._at = np.append(self._at, np.zeros(more, dtype=np.int64))

    def take_promises(self, cti: int) -> Promises:
        """New promises since the last call, in addition to the CTI."""
        if not self._risen:
            return NONE
        ids = np.unique(np.concatenate(self._risen))
        self._risen = []
        before = self._promised(self._highest[ids])
        ids, before = ids[before > cti], before[before > cti]
        return point_promises(self._index.take(ids), before) if len(ids) else NONE

    def _promised(self, highest: Times) -> Times:
        """The promises for highest starts; infinity promises nothing, as in `SourceProgress`."""
        before = np.maximum(highest, MIN + self.delay) - self.delay
        return np.where(highest == INF, MIN, before)

    def slowest(self, since: int) -> int:
        """The promise of all values that have reported since then."""
        size = len(self)
        active = self._highest[:size][self._at[:size] >= since]
        return int(self._promised(active).min()) if len(active) else MIN

    def forget(self, cti: int, before: int) -> None:
        """Drop values that have not reported since and are promised only by the CTI, once they are the majority."""
        if not self._index.may_compact():
            return
        size = len(self)
        highest, at = self._highest[:size], self._at[:size]
        kept = np.flatnonzero((at >= before) | (self._promised(highest) > cti))
        if self._index.compact(kept) is not None:
            self._highest, self._at = highest[kept], at[kept]

    def table(self, limit: int | None = None, *, furthest: bool = False) -> pl.DataFrame:
        """The values with their highest start, promised time and time of the last report, the slowest first."""
        order = extremes(self.highest(), len(self) if limit is None else limit, furthest)
        highest = self._highest[order]
        times = {HIGHEST: highest, BEFORE: self._promised(highest), AT: self._at[order]}
        return self._index.take(order).with_columns(pl.Series(name, column) for name, column in times.items())

    def highest(self) -> Times:
        """The highest start of every value."""
        return self._highest[: len(self)]


def extremes(times: Times, limit: int, furthest: bool) -> Ids:
    """The positions of the earliest times in order, or of the latest in reverse order, without a full sort."""
    places = np.arange(len(times))
    if 0 < limit < len(times):
        parted = np.argpartition(times, len(times) - limit if furthest else limit - 1)
        places = parted[-limit:] if furthest else parted[:limit]
    order = places[np.argsort(times[places], kind="stable")][:limit]
    return order[::-1] if furthest else order
