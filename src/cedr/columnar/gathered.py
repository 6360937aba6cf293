"""Rows by number from frames, the first of which are in files.

Numbers and times of rows at random places are read from the files instead of from mapped pages: each of these would
cost a fault, map the pages around it, and be resident until it is given back.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.mapped import MEMORY, FilePlace
from cedr.kernels.files import gather

Ids = np.ndarray[Any, np.dtype[np.int64]]


class FrameFiles:
    """Where the columns of frames are that were put into files one after the other."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.places: dict[str, list[FilePlace]] = {name: [] for name, kind in schema.items() if is_plain(kind)}
        """Of columns that are plain arrays in all files."""
        self.begins = [0]
        """The number of the first row of each file, and of the first row that is in none."""

    def add(self, frame: pl.DataFrame) -> None:
        """The rows that follow; they need not be in a file."""
        self.begins.append(self.begins[-1] + frame.height)
        for name in list(self.places):
            column = frame.get_column(name)
            place = None if column.null_count() else MEMORY.place_within(column.to_physical().to_numpy())
            if place is None:
                del self.places[name]
            else:
                self.places[name].append(place)

    def take(self, pieces: Sequence[pl.DataFrame], ids: Ids, schema: Mapping[str, Any]) -> pl.DataFrame:
        """Some columns of the rows with some numbers. `pieces` are all frames, also those that are not in files."""
        rest = pieces[len(self.begins) - 1 :]
        plain = [name for name in schema if name in self.places and not any(p[name].null_count() for p in rest)]
        read = {name: self._read(name, schema[name], rest, ids) for name in plain}
        if others := [name for name in schema if name not in read]:
            read |= {column.name: column for column in whole(pieces, others)[ids]}
        return pl.DataFrame([read[name] for name in schema])

    def _read(self, name: str, kind: Any, rest: Sequence[pl.DataFrame], ids: Ids) -> pl.Series:
        places, begins = np.array(self.places[name], dtype=np.int64), np.array(self.begins, dtype=np.int64)
        values = np.empty(len(ids), dtype=physical(kind))
        out = values.view(np.uint8).reshape(len(ids), values.itemsize)
        if not gather(places[:, 0], begins, places[:, 1], ids, out):
            raise MEMORY.unreadable()
        in_rest = np.flatnonzero(ids >= begins[-1])
        if len(in_rest):
            found = whole(rest, [name]).to_series()[ids[in_rest] - begins[-1]]
            values[in_rest] = found.to_physical().to_numpy()
        return pl.Series(name, values).cast(kind)


def is_plain(kind: Any) -> bool:
    """Whether the values of a type are one array of numbers of at most 64 bits."""
    number = kind.is_integer() or kind.is_float() or kind.is_temporal()
    return bool(number and kind not in (pl.Int128, pl.UInt128) and physical(kind).kind in "iuf")


def physical(kind: Any) -> np.dtype[Any]:
    """The type of the numbers that values of a type are stored as."""
    return pl.Series([], dtype=kind).to_physical().to_numpy().dtype


def whole(pieces: Sequence[pl.DataFrame], names: Sequence[str]) -> pl.DataFrame:
    """Some columns of all rows."""
    some = [piece.select(names) for piece in pieces]
    return pl.concat(some, rechunk=False) if len(some) > 1 else some[0]
