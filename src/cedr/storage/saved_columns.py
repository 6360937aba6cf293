"""Sorted blocks in a snapshot (`cedr.columnar.increments`) as JSON:

{"width": 5, "depth": 2, "zero": 2,
 "pieces": [[null, 12, 3], [[7, 100], 9, 4]],         low key, number of the snapshot, table
 "changes": [[10, 5], [12, 6]],                       number of the snapshot, table
 "columns": [0, 1, 2, [3, 5]],                        of the arrays that they stand for
 "names": ["g", ...], "more": {"format": "..."}}      if these have names
 "repeat": 3, "above": [2, 1000], "order": [3, 1]}    see `BlockColumns`; only if they are needed
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cedr.columnar.increments import (
    BlockColumns,
    ColumnDict,
    ColumnTuple,
    Key,
    SavedBlocks,
    SavedChanges,
    SavedColumns,
    SavedPiece,
    as_columns,
    rows_of,
)
from cedr.columnar.stored import StoredTable
from cedr.kernels.increments import is_sorted

Json = Any
MOST_COPIES = 2**40
"""Of all rows together; a file that claims more is damaged."""


def json_of_columns(value: SavedColumns, table: Callable[[StoredTable], int]) -> Json:
    blocks, view = value
    found = {
        "width": blocks.width,
        "depth": blocks.depth,
        "zero": blocks.zero,
        "pieces": [[p.low and list(p.low), p.number, table(p.table)] for p in blocks.pieces],
        "changes": [[some.number, table(some.table)] for some in blocks.changes],
        "columns": [c if isinstance(c, int) else list(c) for c in view.columns],
    }
    if view.names:
        found |= {"names": list(view.names), "more": dict(view.more)}
    if view.repeat is not None:
        found["repeat"] = view.repeat
    if view.above is not None:
        found["above"] = list(view.above)
    if view.order:
        found["order"] = list(view.order)
    return found


def columns_of_json(
    json: Json, array: Callable[[int], Any], stored: Callable[[int], StoredTable]
) -> ColumnTuple | ColumnDict:
    """The arrays. Everything is verified: a `ValueError` or the like if it is not what it should be."""
    width, depth, zero = whole(json["width"], 1), whole(json["depth"], 1), whole(json["zero"])
    if not depth <= zero < width:
        raise ValueError(f"sorted rows of {width} columns with a key of {depth} and counts in column {zero}")
    tables: dict[StoredTable, Any] = {}

    def table(number: int) -> StoredTable:
        found, rows = stored(number), array(number)
        is_matrix = rows.ndim == 2 and rows.shape[1] == width and rows.dtype == np.int64 and rows.flags.c_contiguous
        if not is_matrix or not is_sorted(rows, depth):
            raise ValueError(f"table {number} does not have sorted rows of {width} columns")
        tables[found] = rows
        return found

    pieces = tuple(SavedPiece(key_of(low, depth), whole(n), table(number)) for low, n, number in json["pieces"])
    lows = [piece.low for piece in pieces]
    if not lows or lows[0] is not None or not ascending(lows[1:]):
        raise ValueError("ranges of keys do not follow one another")
    changes = tuple(SavedChanges(whole(n), table(number)) for n, number in json["changes"])
    source = SavedColumns(SavedBlocks(width, depth, zero, pieces, changes), view_of(json, width))
    rows = rows_of(source.blocks, tables.__getitem__)
    if source.view.repeat is not None:
        copies = rows[:, source.view.repeat]
        if copies.min(initial=1) < 1 or copies.sum() > MOST_COPIES:
            raise ValueError("the number of copies of a row is not positive")
    return as_columns(source, rows)


def view_of(json: Json, width: int) -> BlockColumns:
    def column(value: Any) -> int:
        if whole(value) >= width:
            raise ValueError(f"there is no column {value}")
        return int(value)

    def span(value: Any) -> int | tuple[int, int]:
        if not isinstance(value, list):
            return column(value)
        begin, end = value
        if not whole(begin) <= whole(end) <= width:
            raise ValueError(f"there are no columns {begin} to {end}")
        return begin, end

    names, more, above = json.get("names", []), json.get("more", {}), json.get("above")
    columns = tuple(span(value) for value in json["columns"])
    if len(names) not in (0, len(columns)) or any(
        not isinstance(text, str) for text in (*names, *more, *more.values())
    ):
        raise ValueError("columns do not have names")
    repeat = None if "repeat" not in json else column(json["repeat"])
    limit = above and (column(above[0]), integer(above[1]))
    return BlockColumns(columns, tuple(names), dict(more), repeat, limit, tuple(map(column, json.get("order", []))))


def key_of(json: Json, depth: int) -> Key | None:
    if json is None:
        return None
    if len(json) != depth:
        raise ValueError(f"a key of {len(json)} numbers instead of {depth}")
    return tuple(integer(value) for value in json)


def ascending(lows: list[Key | None]) -> bool:
    known = [low for low in lows if low is not None]
    return len(known) == len(lows) and known == sorted(set(known))


def whole(value: Any, least: int = 0) -> int:
    if integer(value) < least:
        raise ValueError(f"{value} is less than {least}")
    return int(value)


def integer(value: Any) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise ValueError(f"{value!r} is not a whole number of 64 bits")
    return value
