"""Plain values: what is written comes back the same, and bytes of others become a value or an error, never code."""

import math
import pickle
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cedr.columnar.promises import promises_of
from cedr.runtime.spark.shard.packet import Highest, Packet, from_parts, to_parts
from cedr.runtime.spark.shard.shard import ShardMetrics
from cedr.runtime.spark.shard.state import SpilledRows
from cedr.sources.progress import ProgressReport
from cedr.sources.source_status import PartitionStatus, SourceStatus
from cedr.storage.plain import FORMAT, MalformedError, from_bytes, to_bytes
from cedr.temporal import ExternalCti, Row
from cedr.temporal.punctuation import ANY, NOTHING, Constant, OneOf, Range, punctuation

BERLIN = ZoneInfo("Europe/Berlin")
SCALARS = [
    *(None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, -(2**200), 0.0, -0.0, 1e-320, math.inf, -math.inf),
    *("", "é\N{PILE OF POO}", "\ud800", b"", b"\x80\x05.", date(1, 1, 1), time(23, 59, 59, 999_999)),
    *(
        timedelta(days=-3, microseconds=1),
        timedelta.max,
        timedelta.min,
        Decimal("1.50"),
        Decimal("-0"),
        Decimal("1e-38"),
    ),
    *(
        datetime(2024, 10, 27, 2, 30),
        datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN),
        datetime(2024, 1, 1, tzinfo=UTC),
    ),
    *(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=-11, minutes=-30))), datetime.max),
]


@pytest.mark.parametrize("value", SCALARS, ids=repr)
def test_scalars_come_back_with_their_types(value):
    found = from_bytes(to_bytes(value))
    assert type(found) is type(value)
    assert repr(found) == repr(value)
    if isinstance(value, datetime):
        assert (found.fold, found.utcoffset()) == (value.fold, value.utcoffset())


values = st.recursive(
    st.sampled_from(SCALARS) | st.integers() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.integers() | st.text() | st.none(), inner)
        | st.dictionaries(st.text(), st.integers()).map(Row)
        | st.frozensets(st.integers() | st.text())
    ),
)


@given(values)
@example(["a"] * 20)
@example(list(range(20)))
@example([2**63, *range(20)])
@example({f"partition {n}": n for n in range(100)})
@example(dict.fromkeys(range(100), None))
def test_containers_come_back(value):
    assert from_bytes(to_bytes(value)) == value


def test_nan_comes_back():
    assert math.isnan(from_bytes(to_bytes([math.nan]))[0])
    assert from_bytes(to_bytes(np.float64(1.5))) == 1.5


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint64", "float32", "bool"])
def test_arrays_come_back_and_can_be_changed(dtype):
    found = from_bytes(to_bytes(np.array([1, 0, 3], dtype)))
    assert found.dtype == dtype
    assert found.tolist() == np.array([1, 0, 3], dtype).tolist()
    found[0] = 0


def test_tables_and_their_types_come_back():
    frame = pl.DataFrame(
        {
            "a": [1, None],
            "b": ["x", "y"],
            "c": [datetime(2024, 1, 1, tzinfo=UTC)] * 2,
            "d": [[1], []],
            "e": [{"f": 1}] * 2,
        },
        schema_overrides={"b": pl.Enum(["x", "y"])},
    ).with_columns(g=pl.col("a").cast(pl.Decimal(38, 2)))
    assert from_bytes(to_bytes(frame)).equals(frame)
    assert from_bytes(to_bytes(frame)).schema == frame.schema
    assert from_bytes(to_bytes(dict(frame.schema))) == dict(frame.schema)
    assert from_bytes(to_bytes(frame[:0])).schema == frame.schema


def test_progress_reports_come_back():
    schema = {"k": pl.Int64(), "n": pl.String(), "t": pl.Datetime("us", "UTC"), "x": pl.Float64()}
    promises = promises_of(
        [
            punctuation(5, k=[1, 2, 3]),
            punctuation(7, n="a", k=4),
            punctuation(8, x=Range(1.0, 2.0), n="b"),
            punctuation(t=Constant(datetime(2024, 1, 1, tzinfo=UTC))),
        ],
        schema,
    )
    assert promises.points
    assert promises.steps
    assert promises.others
    keys = pl.DataFrame({"k": [1, 2], "_highest": [3, 4]})
    report = ProgressReport(
        {None: 3, "a": 4, 5: 6}, {None: 2}, (ExternalCti(1, 4, 2),), np.array([1, 2, 3]), 17, keys, promises
    )
    source, (found,) = from_bytes(to_bytes(("readings", [report])))
    assert source == "readings"
    assert (found.highest, found.ctis, found.external, found.at) == (
        report.highest,
        report.ctis,
        report.external,
        report.at,
    )
    assert found.syncs.tolist() == [1, 2, 3]
    assert found.keys.equals(keys)
    rows = pl.DataFrame({"k": [1, 4, 9], "n": ["a", "a", "b"], "t": [None] * 3, "x": [0.0, 0.0, 1.5]}, schema=schema)
    assert found.promises.of(rows).tolist() == promises.of(rows).tolist()
    assert found.promises.kinds == promises.kinds


@pytest.mark.parametrize(
    "value",
    [
        Highest(3, 4),
        SpilledRows("spilled-1", 5),
        ShardMetrics(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1),
        SourceStatus("s", 1, 2, 3, (PartitionStatus("a", 1, 2, 3),), (), 4),
        *(ANY, NOTHING, OneOf(["a", None]), Range(None, 3), punctuation(3, a=1)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_our_classes_come_back(value):
    found = from_bytes(to_bytes(value))
    assert type(found) is type(value)
    assert found == value


def test_packets_come_back():
    packets = [Packet(1, n % 2, "rows", 3, n, 0, to_bytes(n) if n else b"", b"b" * (n % 3), n) for n in range(20)]
    for some in (packets, packets[:1], []):
        small, parts = to_parts(some)
        assert from_parts(from_bytes(to_bytes(small)), parts) == some


class Bomb:
    def __reduce__(self):
        return (eval, ("1/0",))


def test_other_classes_are_not_written():
    with pytest.raises(TypeError, match=r"cannot send a .*Bomb; mark the class"):
        to_bytes([Bomb()])


@given(st.binary() | st.binary().map(FORMAT.__add__))
@example(pickle.dumps(Bomb()))
@example(FORMAT + pickle.dumps(Bomb()))
@example(b"")
@example(FORMAT + b"[*\xff\xff\xff\xff")
@example(FORMAT + b"[*\x01\x00\x00\x00" * 2)
@example(FORMAT + b"(*\x01\x00\x00\x00" * 10_000)
@example(FORMAT + b"O\x04\x00\x00\x00Bomb(*\x00\x00\x00\x00")
@example(FORMAT + b"O\x04\x00\x00\x00Told(*\x01\x00\x00\x00N")
@example(FORMAT + b"A\x01\x00\x00\x00Ob\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
@example(FORMAT + b"P\x04\x00\x00\x00\xff\xff\xff\xff")
@example(FORMAT + b"[s\x05\x00\x00\x00[1,2]")
@example(FORMAT + b"NN")
def test_bytes_of_others_are_a_value_or_an_error(content):
    with suppress(MalformedError):
        from_bytes(content)


def test_the_error_names_the_remedy():
    with pytest.raises(MalformedError, match=r"message of 2 bytes cannot be read .* need the same version of cedr"):
        from_bytes(b"\x80\x05")


def test_damaged_values_are_a_value_or_an_error():
    whole = to_bytes((SCALARS, pl.DataFrame({"a": [1, 2]}), np.array([1]), {"a": Highest(1, 2)}))
    for place in range(0, len(whole), 3):
        for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]):
            with suppress(MalformedError):
                from_bytes(damaged)


@pytest.mark.parametrize("content", [b"[1, 2]", b'["a", 1]', b'{"a": 1}'])
def test_a_list_of_texts_has_nothing_else(content):
    with pytest.raises(MalformedError, match="a list of texts has other values"):
        from_bytes(FORMAT + b"[s" + len(content).to_bytes(4, "little") + content)
