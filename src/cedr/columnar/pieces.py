"""Frames that are put together from pieces, and remember them.

A snapshot writes a piece that it has written before only once, so it must recognise it. The frame of all pieces is
another object each time; the pieces stay the same objects as long as their owner keeps them.
"""

from collections.abc import Sequence

import polars as pl

from cedr.columnar.stored import StoredTable

PIECES = "_cedr_pieces"
STORED = "_cedr_stored"


def joined(pieces: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """One frame, whose rows are not copied."""
    if len(pieces) == 1:
        return pieces[0]
    whole = pl.concat(pieces, rechunk=False)
    setattr(whole, PIECES, tuple(pieces))
    return whole


def pieces_of(frame: pl.DataFrame) -> tuple[pl.DataFrame, ...]:
    """The pieces that a frame was put together from; any other frame is a piece."""
    found: tuple[pl.DataFrame, ...] = getattr(frame, PIECES, (frame,))
    return found


def with_stored(frame: pl.DataFrame, tables: Sequence[StoredTable]) -> pl.DataFrame:
    """The frame, which remembers the tables in which its rows are stored."""
    setattr(frame, STORED, tuple(tables))
    return frame


def stored_of(frame: pl.DataFrame) -> tuple[StoredTable, ...]:
    """The tables in which the rows of a frame are stored; none if that is not known."""
    found: tuple[StoredTable, ...] = getattr(frame, STORED, ())
    return found
