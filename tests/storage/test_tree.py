"""Snapshots as JSON and Arrow: what is read is what was written, and bytes that are something else are refused."""

import json
import math
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from random import Random
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from matrix.values import COLUMNS
from storage.through_bytes import through_bytes

from cedr.columnar.pieces import joined, pieces_of
from cedr.columnar.promises import Promises, Steps
from cedr.storage import tree as tree_module
from cedr.storage.plain import MalformedError
from cedr.storage.tables import about, read_table, to_bytes, verified_frame
from cedr.storage.tree import TreeReader, TreeWriter
from cedr.temporal.element import ExternalCti
from cedr.temporal.punctuation import ANY, NOTHING, Constant, OneOf, Punctuation, Range
from cedr.temporal.row import Row

VALUES = [
    None,
    True,
    0,
    -(2**63),
    2**200,
    1.5,
    -0.0,
    1e-300,
    math.inf,
    -math.inf,
    "",
    "ü∞\ud800\n",
    b"\x00\xff",
    [],
    (1, (2, [3])),
    [*range(2000)],
    (*range(-1000, 1000), 2**63),
    {"a": 1, "$b": 2},
    {"$tuple": [1]},
    {None: 1, (1, "a"): {2: 3}, date(2024, 2, 29): [Decimal("1.20")]},
    {n: n * n for n in range(3000)},
    {1, 2},
    frozenset({"a", None}),
    Row({"a": 1, "$b": (1, None)}),
    date(2024, 2, 29),
    time(12, 30, 0, 5),
    datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
    datetime(2024, 1, 1, tzinfo=UTC),
    datetime(2024, 1, 1, tzinfo=timezone(timedelta(minutes=-90))),
    datetime(2024, 1, 1),
    timedelta(days=-3, microseconds=7),
    Decimal("-0.10"),
    ExternalCti(1, 5, 3),
    pl.Datetime("ns", "UTC"),
    pl.List(pl.Enum(["a", "b"])),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: type(v).__name__)
def test_values(value):
    found = through_bytes(value)
    assert found == value
    assert type(found) is type(value)
    assert repr(found) == repr(value) or isinstance(value, set | frozenset)


def test_numbers_of_numpy_and_counters_become_plain():
    assert math.isnan(through_bytes(math.nan))
    assert [type(v) for v in through_bytes([np.int64(1), np.float32(1.5), np.bool_(True)])] == [int, float, bool]
    assert through_bytes(Counter("aab")) == {"a": 2, "b": 1}


def test_other_objects_are_not_saved():
    for value in (object(), np.array([object()]), np.array(["a"])):
        with pytest.raises(TypeError, match="cannot save"):
            through_bytes([value])


ARRAYS = [
    np.arange(7),
    np.arange(0),
    np.array([True, False]),
    np.arange(5, dtype=np.uint64) << np.uint64(60),
    np.array([1.5, np.nan], dtype=np.float32),
    np.arange(12).reshape(3, 4),
    np.asfortranarray(np.arange(12).reshape(3, 4)),
    np.arange(24).reshape(2, 3, 4),
    np.empty((5, 0), dtype=np.int64),
    np.array(3),
    np.arange(20)[::3],
    np.arange(20).reshape(4, 5)[:, ::2],
    np.arange(4, dtype=">i4"),
    *(np.arange(3).astype(kind) for kind in ("i1", "i2", "i4", "u1", "u2", "u4", "f8")),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_arrays(array):
    found = through_bytes(array)
    assert np.array_equal(found, array, equal_nan=array.dtype.kind == "f")
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.shape == array.shape
    assert found.flags.writeable, "kernels have another type for arrays that are not"
    assert found.flags.aligned
    assert found.flags.f_contiguous or not array.flags.f_contiguous


@pytest.mark.parametrize("name", COLUMNS)
def test_frames_of_every_type(name):
    values = COLUMNS[name]
    frame = pl.DataFrame({"v": values, "n": range(len(values))})
    for part in (frame, frame[:1], frame[:0], frame.select("v")):
        found = through_bytes(part)
        assert found.schema == part.schema
        assert found.equals(part)


def test_frames_without_columns_and_wide_integers():
    for frame in (pl.DataFrame(height=3), pl.DataFrame(), pl.DataFrame({"v": pl.Series([2**100], dtype=pl.Int128)})):
        found = through_bytes(frame)
        assert found.equals(frame)
        assert found.shape == frame.shape


def test_frames_in_pieces_stay_in_pieces():
    pieces = [pl.DataFrame({"v": ["a", "b"]}), pl.DataFrame({"v": ["c"]})]
    found = through_bytes(joined(pieces))
    assert found.equals(pl.concat(pieces))
    assert [piece.height for piece in pieces_of(found)] == [2, 1]


PROMISES = Promises(
    {("a", "b"): pl.DataFrame({"a": [1], "b": ["x"], "before": [7]})},
    {"v": Steps(np.array([1]), np.array([2]), np.array([3]))},
    (Punctuation({"v": Range(None, 5), "w": OneOf([1, None]), "x": Constant(date(2024, 1, 1))}, 9),),
    {"v": pl.Int64()},
)


def test_promises():
    points = {names: table.rename({"before": tree_module.BEFORE}) for names, table in PROMISES.points.items()}
    made = Promises(points, PROMISES.steps, PROMISES.others, PROMISES.kinds)
    found = through_bytes({"p": made})["p"]
    assert list(found) == list(made)
    assert found.others == made.others
    assert found.kinds == made.kinds
    assert through_bytes([ANY, NOTHING]) == [ANY, NOTHING]


# --- bytes that are something else -----------------------------------------------------------------------------------

FRAME = pl.DataFrame(
    {
        "i": [1, None, 3],
        "s": ["a", "a text that is longer than twelve bytes", None],
        "l": [[1, 2], None, []],
        "c": pl.Series(["x", "y", None], dtype=pl.Categorical),
        "e": pl.Series(["x", "y", None], dtype=pl.Enum(["x", "y"])),
        "d": pl.Series([Decimal("1.20"), None, None], dtype=pl.Decimal(20, 2)),
    }
)


@pytest.mark.parametrize("table", [FRAME, FRAME.select("i"), np.arange(9), np.array([True, False])])
def test_tables_that_were_changed_are_refused_or_read(table):
    """The checksum of a file says that nothing changed; without it any byte may be anything."""
    content, what, random, refused = to_bytes(table), about(table), Random(1), 0
    for attempt in range(1500):
        changed = bytearray(content)
        match attempt % 4:
            case 0:
                changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
            case 1:
                at = random.randrange(0, len(changed) - 8, 4)
                changed[at : at + 8] = random.choice(
                    [b"\xff" * 8, b"\xff" * 7 + b"\x7f", bytes(8), random.randbytes(8)]
                )
            case 2:
                changed = changed[: random.randrange(len(changed))]
            case 3:
                one, two = sorted(random.sample(range(0, len(changed), 8), 2))
                changed[one : one + 8], changed[two : two + 8] = changed[two : two + 8], changed[one : one + 8]
        try:
            found = read_table(np.frombuffer(bytes(changed), np.uint8).copy(), what)
            str(found)
        except MalformedError:
            refused += 1
    assert refused > 300


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [10]},
        {"shape": [3, 2**60]},
        {"shape": [-9]},
        {"shape": "9"},
        {"shape": [9.0]},
        {"array": "<i4"},
        {"array": "|O"},
        {"array": "<M8[us]"},
        {"order": "K"},
        {"array": None},
    ],
)
def test_wrong_descriptions_are_refused(changes):
    array = np.arange(9)
    content = np.frombuffer(to_bytes(array), np.uint8).copy()
    assert np.array_equal(read_table(content, about(array)), array)
    with pytest.raises(MalformedError):
        read_table(content, about(array) | changes)
    with pytest.raises(MalformedError):
        read_table(content, {"frame": 8})
    with pytest.raises(MalformedError):
        read_table(content, {"frame": None})


TABLES = [np.arange(3), pl.DataFrame({"a": [1]})]


@pytest.mark.parametrize(
    "json",
    [
        {"$array": 1},
        {"$array": 2},
        {"$array": -1},
        {"$array": True},
        {"$array": "0"},
        {"$frame": [0]},
        {"$frame": 1},
        {"$frame": []},
        {"$type": 0},
        {"$eval": "1"},
        {"$tuple": 1},
        {"$tuple": [1], "more": 2},
        {"$dict": [[1], []]},
        {"$dict": [[[1]], [1]]},
        {"$dict": {"a": 1}},
        {"$list": [1]},
        {"$list": {"$array": 1}},
        {"$float": "1e999"},
        {"$bytes": "*"},
        {"$date": "yesterday"},
        {"$datetime": ["2024-01-01", 0, "../../etc/passwd"]},
        {"$datetime": ["2024-01-01", 0, "Mars/Phobos"]},
        {"$decimal": "one"},
        {"$duration": 10**30},
        {"$row": 1},
        {"$Promises": []},
        {"$Promises": [1, 2, 3, 4]},
        {"$Promises": [{}, {"a": 1}, {"$tuple": []}, {}]},
        {"$Promises": [{"a": {"$frame": [1]}}, {}, {"$tuple": []}, {}]},
        {"$Promises": [{}, {}, [1], {}]},
        {"$Steps": [{"$array": 0}, {"$array": 0}, 1]},
        {"$Punctuation": [{}, "x"]},
        {"$ExternalCti": [5, 1, 3]},
        {"$SpilledRows": ["a", 1]},
        {"$SparkJob": []},
    ],
    ids=json.dumps,
)
def test_wrong_values_are_refused(json):
    with pytest.raises(MalformedError):
        TreeReader(TABLES).tree({"a": [json]})


def test_deep_trees_are_refused():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(MalformedError):
        TreeReader([]).tree(deep)


def test_a_table_that_occurs_twice_is_written_once():
    array, writer = np.arange(3), TreeWriter()
    assert writer.json([array, {"a": array}]) == [{"$array": 0}, {"a": {"$array": 0}}]
    assert len(writer.tables) == 1


def test_rows_from_anywhere():
    assert verified_frame(to_bytes(FRAME)).equals(FRAME)
    for content in (b"", b"\x00" * 100, to_bytes(FRAME)[:100], b"\xff" * 64):
        with pytest.raises(MalformedError, match="its rows cannot be read"):
            verified_frame(content)
