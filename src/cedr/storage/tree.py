"""Snapshots as JSON: a tree of plain values, whose arrays and frames are tables next to it.

JSON has texts, numbers, lists, truth values and null. An object with one key that begins with `$` is a value of another
kind, any other object a dict whose keys are texts:

    {"$tuple": [1, 2]}                  {"$array": 3}              table 3
    {"$set": [1, 2]}, {"$frozenset": …} {"$frame": [4, 5]}         tables 4 and 5, one below the other
    {"$dict": [[keys], [values]]}       {"$type": 6}               the type of the only column of table 6
    {"$list": {"$array": 7}}            {"$float": "nan"}          also inf and -inf
    {"$row": {"a": 1}}                  {"$bytes": "aGk="}         in base 64
    {"$date": "2024-02-29"}             {"$time": "12:30:00"}
    {"$datetime": ["2024-02-29T12:30:00", 0, "Europe/Berlin"]}     text, fold, zone or offset in microseconds
    {"$duration": 1000000}              {"$decimal": "1.20"}       microseconds
    {"$Promises": [points, steps, others, kinds]}                  the fields of a class that may be saved
    {"$blocks": {...}}                  arrays that are columns of sorted rows, in tables of several snapshots (`saved`)

Reading runs no code but ours. Anything else than such values is a `MalformedError`.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from math import isfinite
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from cedr.columnar.increments import ColumnDict, ColumnTuple, SavedColumns
from cedr.columnar.pieces import joined, pieces_of, with_stored
from cedr.columnar.promises import BEFORE, Promises, Steps
from cedr.columnar.stored import SavedFrame, StoredTable
from cedr.storage.plain import INT64, MalformedError, fields_of
from cedr.storage.saved_columns import columns_of_json, json_of_columns
from cedr.storage.tables import Table
from cedr.temporal.element import ExternalCti
from cedr.temporal.punctuation import Constant, Empty, OneOf, Punctuation, Range, Wildcard
from cedr.temporal.row import Row

Json = Any
MANY = 1000
"""Lists of at least this many whole numbers are written as arrays."""
CLASSES: dict[str, Any] = {
    kind.__name__: kind for kind in (Promises, Steps, Punctuation, Wildcard, Empty, Constant, Range, OneOf, ExternalCti)
}
"""Classes whose objects may be part of a snapshot."""
ITSELF = {type(None), bool, int, str}
MICROSECOND = timedelta(microseconds=1)


# --- writing ---------------------------------------------------------------------------------------------------------


class TreeWriter:
    """Turns values into JSON and collects their tables. A table that occurs several times is written once."""

    def __init__(self) -> None:
        self.tables: list[Table | StoredTable] = []
        self._numbers: dict[int, int] = {}

    def table(self, table: Table | StoredTable) -> int:
        if id(table) not in self._numbers:
            self._numbers[id(table)] = len(self.tables)
            self.tables.append(table)
        return self._numbers[id(table)]

    def json(self, value: Any) -> Json:
        kind = type(value)
        if kind in ITSELF:
            return value
        if (writer := WRITERS.get(kind)) is not None:
            return writer(self, value)
        if CLASSES.get(kind.__name__) is kind:
            return {f"${kind.__name__}": [self.json(getattr(value, name)) for name in fields_of(kind)]}
        if isinstance(value, np.integer | np.floating | np.bool_):
            return self.json(value.item())
        if isinstance(value, pl.DataType) or (isinstance(value, type) and issubclass(value, pl.DataType)):
            return {"$type": self.table(pl.DataFrame(schema={"": value}))}
        if isinstance(value, dict):
            return self.dict(value)
        raise TypeError(f"cannot save a {kind.__module__}.{kind.__qualname__} in a snapshot")

    def list(self, values: Sequence[Any]) -> Json:
        kinds = set(map(type, values))
        if kinds == {int} and len(values) >= MANY and min(values) in INT64 and max(values) in INT64:
            return {"$list": {"$array": self.table(np.array(values, dtype=np.int64))}}
        return list(values) if kinds <= ITSELF else [self.json(v) for v in values]

    def dict(self, values: dict[Any, Any]) -> Json:
        if all(type(key) is str and not key.startswith("$") for key in values):
            return {key: self.json(value) for key, value in values.items()}
        return {"$dict": [self.list(tuple(values)), self.list(tuple(values.values()))]}


def json_of_datetime(value: datetime) -> Json:
    zone, offset = value.tzinfo, value.utcoffset()
    where = zone.key if isinstance(zone, ZoneInfo) else None if offset is None else offset // MICROSECOND
    return {"$datetime": [value.replace(tzinfo=None).isoformat(), value.fold, where]}


WRITERS: dict[type, Callable[[TreeWriter, Any], Json]] = {
    float: lambda _, value: value if isfinite(value) else {"$float": str(value)},
    list: TreeWriter.list,
    tuple: lambda writer, value: {"$tuple": writer.list(value)},
    set: lambda writer, value: {"$set": writer.list(tuple(value))},
    frozenset: lambda writer, value: {"$frozenset": writer.list(tuple(value))},
    dict: TreeWriter.dict,
    Row: lambda writer, value: {"$row": {name: writer.json(v) for name, v in value.items()}},
    bytes: lambda _, value: {"$bytes": b64encode(value).decode()},
    date: lambda _, value: {"$date": value.isoformat()},
    time: lambda _, value: {"$time": value.isoformat()},
    datetime: lambda _, value: json_of_datetime(value),
    timedelta: lambda _, value: {"$duration": value // MICROSECOND},
    Decimal: lambda _, value: {"$decimal": str(value)},
    np.ndarray: lambda writer, value: {"$array": writer.table(value)},
    pl.DataFrame: lambda writer, value: {"$frame": [writer.table(piece) for piece in pieces_of(value)]},
    SavedFrame: lambda writer, value: {"$frame": [writer.table(piece) for piece in value.tables]},
    SavedColumns: lambda writer, value: {"$blocks": json_of_columns(value, writer.table)},
    ColumnTuple: lambda writer, value: {"$tuple": writer.list(value)},
    ColumnDict: TreeWriter.dict,
}


# --- reading ---------------------------------------------------------------------------------------------------------


class TreeReader:
    """The values that JSON represents, given its tables, and where those are stored that need not be kept."""

    def __init__(self, tables: Sequence[Table], places: Sequence[Any] = ()) -> None:
        self.tables, self.places = tables, places

    def tree(self, json: Json) -> Any:
        try:
            return self.value(json)
        except MalformedError:
            raise
        except Exception as e:
            raise MalformedError(f"its values cannot be read ({e})") from None

    def value(self, json: Json) -> Any:
        if isinstance(json, list):
            return [self.value(v) for v in json]
        if not isinstance(json, dict):
            return json
        if len(json) == 1:
            ((tag, content),) = json.items()
            if tag.startswith("$"):
                return self.tagged(tag, content)
        if any(key.startswith("$") for key in json):
            raise ValueError(f"unknown object with the keys {', '.join(json)}")
        return {key: self.value(v) for key, v in json.items()}

    def tagged(self, tag: str, content: Json) -> Any:
        if (reader := READERS.get(tag)) is not None:
            return reader(self, content)
        kind = CLASSES[tag[1:]]
        values = [self.value(v) for v in content]
        if len(values) != len(fields_of(kind)):
            raise ValueError(f"a {kind.__name__} has {len(fields_of(kind))} fields")
        made = kind(*values)
        if (check := CHECKS.get(kind)) is not None and not check(made):
            raise ValueError(f"fields of a {kind.__name__} are not what they should be")
        return made

    def items(self, json: Json) -> list[Any]:
        found = self.value(json)
        if not isinstance(found, list):
            raise TypeError(f"a list is expected, not {type(found).__name__}")
        return found

    def dict(self, json: Json) -> dict[Any, Any]:
        keys, values = json
        return dict(zip(self.items(keys), self.items(values), strict=True))

    def array(self, number: Json) -> np.ndarray[Any, Any]:
        table = self._table(number)
        if not isinstance(table, np.ndarray):
            raise TypeError(f"table {number} is not an array")
        return table

    def frame(self, number: Json) -> pl.DataFrame:
        table = self._table(number)
        if not isinstance(table, pl.DataFrame):
            raise TypeError(f"table {number} is not a frame")
        return table

    def frames(self, numbers: Json) -> pl.DataFrame:
        return with_stored(joined([self.frame(number) for number in numbers]), [self.stored(n) for n in numbers])

    def stored(self, number: int) -> StoredTable:
        """A table by where it is stored; one without a place is kept."""
        place = self.places[number] if self.places else None
        return StoredTable.of(self.tables[number]) if place is None else StoredTable.at(self.tables[number], place)

    def _table(self, number: Json) -> Table:
        if type(number) is not int or not 0 <= number < len(self.tables):
            raise ValueError(f"there is no table {number!r}")
        return self.tables[number]


def datetime_of_json(json: Json) -> datetime:
    text, fold, where = json
    zone = None if where is None else ZoneInfo(where) if isinstance(where, str) else timezone(MICROSECOND * where)
    return datetime.fromisoformat(text).replace(fold=fold, tzinfo=zone)


FLOATS = {text: float(text) for text in ("nan", "inf", "-inf")}
READERS: dict[str, Callable[[TreeReader, Json], Any]] = {
    "$float": lambda _, json: FLOATS[json],
    "$list": lambda reader, json: reader.array(json["$array"]).tolist(),
    "$tuple": lambda reader, json: tuple(reader.items(json)),
    "$set": lambda reader, json: set(reader.items(json)),
    "$frozenset": lambda reader, json: frozenset(reader.items(json)),
    "$dict": TreeReader.dict,
    "$row": lambda reader, json: Row({name: reader.value(v) for name, v in json.items()}),
    "$bytes": lambda _, json: b64decode(json, validate=True),
    "$date": lambda _, json: date.fromisoformat(json),
    "$time": lambda _, json: time.fromisoformat(json),
    "$datetime": lambda _, json: datetime_of_json(json),
    "$duration": lambda _, json: timedelta(microseconds=json),
    "$decimal": lambda _, json: Decimal(json),
    "$array": TreeReader.array,
    "$frame": TreeReader.frames,
    "$blocks": lambda reader, json: columns_of_json(json, reader.array, reader.stored),
    "$type": lambda reader, json: reader.frame(json).dtypes[0],
}


def is_promises(value: Promises) -> bool:
    return (
        all(
            isinstance(names, tuple) and isinstance(table, pl.DataFrame) and table.columns == [*names, BEFORE]
            for names, table in value.points.items()
        )
        and all(isinstance(s, Steps) and is_type(value.kinds[name]) for name, s in value.steps.items())
        and all(isinstance(p, Punctuation) for p in value.others)
        and all(isinstance(name, str) and is_type(kind) for name, kind in value.kinds.items())
    )


def is_type(value: Any) -> bool:
    return isinstance(value, pl.DataType)


def is_steps(value: Steps) -> bool:
    return all(isinstance(a, np.ndarray) and a.dtype == np.int64 and a.shape == value.low.shape for a in value)


def is_punctuation(value: Punctuation) -> bool:
    patterns = (Wildcard, Empty, Constant, Range, OneOf)
    return type(value.before) is int and all(
        isinstance(name, str) and isinstance(pattern, patterns) for name, pattern in value.patterns.items()
    )


CHECKS: dict[Any, Callable[[Any], bool]] = {Promises: is_promises, Steps: is_steps, Punctuation: is_punctuation}
