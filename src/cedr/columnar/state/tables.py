"""The fields of a snapshot as tables: rows of arrays and frames, with keys and payloads instead of their numbers.

A field that is a frame, a tuple of arrays or the columns of a named tuple has one row per tuple. Arrays of one length
that are fields of one part are columns of one table. Numbers of keys and payloads are replaced by the rows that the
nearest index has under them.
"""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.state.stateful import FORMAT

INDEXES = {
    "key": ("keys", "groups", "index"),
    "g": ("groups", "keys", "results", "index"),
    "value": ("payloads", "index"),
    "pid": ("index", "payloads"),
    "slot": ("payloads",),
    "content": ("content_index",),
}
"""By the name of a column of numbers, the names of the indexes that it may refer to."""
NUMBERED = "key"
"""The first array of a tuple is the number of the key."""


def tables_of(state: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """All fields of an operator that have rows, by name; parts of parts have names with dots."""
    return dict(walk("", state, ()))


def walk(name: str, value: Any, above: tuple[Any, ...]) -> Iterator[tuple[str, pl.DataFrame]]:
    """`above` are the parts that the value is in, the nearest first."""
    columns = columns_of(value)
    if isinstance(value, pl.DataFrame):
        yield name, value
    elif columns is not None:
        yield name, resolved(columns, (value, *above) if isinstance(value, dict) else above, name)
    if isinstance(value, dict):
        for key, item in value.items():
            if columns is None or not isinstance(item, np.ndarray):
                yield from walk(f"{name}.{key}" if name else str(key), item, (value, *above))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from walk(f"{name}.{number}", item, above)


def columns_of(value: Any) -> dict[str, Any] | None:
    """The arrays of a value that are columns of one table."""
    if isinstance(value, np.ndarray):
        found = {"value": value}
    elif isinstance(value, dict):
        found = {str(name): array for name, array in value.items() if isinstance(array, np.ndarray)}
    elif isinstance(value, tuple) and value and all(isinstance(array, np.ndarray) for array in value):
        found = {NUMBERED if n == 0 else str(n): array for n, array in enumerate(value)}
    else:
        return None
    lengths = {len(array) if array.ndim else -1 for array in found.values()}
    return found if len(lengths) == 1 and -1 not in lengths else None


def resolved(columns: Mapping[str, Any], above: tuple[Any, ...], name: str) -> pl.DataFrame:
    found: list[pl.Series] = []
    for column, array in columns.items():
        index = nearest(INDEXES.get(column, ()), above, name)
        if index is not None and array.ndim == 1 and len(array) and array.min() >= 0 and array.max() < index.height:
            found += index[array].get_columns() if index.width else []
        elif array.ndim == 1:
            found.append(pl.Series(column, array))
        else:
            flat = array.reshape(len(array), prod(array.shape[1:]))
            found += [pl.Series(f"{column}.{i}", np.ascontiguousarray(flat[:, i])) for i in range(flat.shape[1])]
    return pl.DataFrame(distinct_names(found))


def nearest(names: tuple[str, ...], above: tuple[Any, ...], field: str) -> pl.DataFrame | None:
    """The rows of the first index with one of these names in the nearest part that has one."""
    for part in above:
        for name in names:
            if (index := index_of(part.get(name), field)) is not None:
                return index
    return None


def index_of(value: Any, field: str) -> pl.DataFrame | None:
    """An index is a frame, or a part with one; of several, the one at the position of the field."""
    if isinstance(value, list):
        last = field.rpartition(".")[2]
        value = value[int(last)] if last.isdigit() and int(last) < len(value) else value[0] if len(value) == 1 else None
    if isinstance(value, dict) and FORMAT in value:
        value = value.get("index")
    return value if isinstance(value, pl.DataFrame) else None


def distinct_names(columns: list[pl.Series]) -> list[pl.Series]:
    names: set[str] = set()
    found = []
    for column in columns:
        name = column.name
        while name in names:
            name += "_"
        names.add(name)
        found.append(column.rename(name))
    return found
