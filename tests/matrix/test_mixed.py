"""Keys of two types: compared by value, or rejected with an expression that makes them alike."""

import datetime as dt
from decimal import Decimal

import polars as pl
import pytest
from matrix.roles import feed, in_turn, source

import cedr
from cedr.temporal import CedrError, QueryError

NOON = dt.datetime(2024, 1, 1, 12)
MIXED = {
    "decimals": (
        pl.Series([Decimal("1.50"), Decimal("2.00")], dtype=pl.Decimal(10, 2)),
        pl.Series([Decimal("2.000"), Decimal("1.500")], dtype=pl.Decimal(12, 3)),
    ),
    "integers": (pl.Series([1, 2], dtype=pl.Int32), pl.Series([2, 1], dtype=pl.Int64)),
    "unsigned": (pl.Series([1, 2], dtype=pl.UInt64), pl.Series([2, 1], dtype=pl.Int64)),
    "units": (pl.Series([NOON] * 2, dtype=pl.Datetime("ms")), pl.Series([NOON] * 2, dtype=pl.Datetime("ns"))),
    "lengths": (pl.Series([1, 2]).cast(pl.Duration("ms")), pl.Series([2000, 1000]).cast(pl.Duration("us"))),
    "words": (pl.Series(["a", "b"], dtype=pl.Enum(["b", "a"])), pl.Series(["b", "a"])),
    "a day": (pl.Series([NOON.date()] * 2), pl.Series([dt.datetime(2024, 1, 1)] * 2, dtype=pl.Datetime("us"))),
}
APART = {
    "zones": (pl.Datetime("us"), pl.Datetime("us", "UTC")),
    "two zones": (pl.Datetime("us", "Europe/Berlin"), pl.Datetime("us", "UTC")),
    "text and number": (pl.String(), pl.Int64()),
}
SEQUENCE = "EVENT P WHEN SEQUENCE(A x, B y, 100) WHERE {} OUTPUT x.id AS x, y.id AS y"


def sequence(where: str, left: pl.DataType, right: pl.DataType):
    return cedr.query(SEQUENCE.format(where), feed(left, "A"), feed(right, "B"))


@pytest.mark.parametrize("name", MIXED)
def test_a_comparison_goes_by_value(name):
    left, right = (values.alias("v") for values in MIXED[name])
    found = sequence("x.v = y.v", left.dtype, right.dtype).run({"A": in_turn(left), "B": in_turn(right)}).table()
    assert found.select("x", "y").rows() == [(0, 1)]


@pytest.mark.parametrize("name", [*MIXED, *APART])
def test_keys_of_two_types_are_rejected_with_what_to_do(name):
    left, right = APART[name] if name in APART else (values.dtype for values in MIXED[name])
    with pytest.raises(
        QueryError, match=r"key 'v' is .* on the left, but 'v' is .* on the right; make them alike"
    ) as e:
        source(left).join(source(right, "t"), on="v")
    suggested = str(e.value).partition("with_columns(")[2].rpartition(")")[0]
    made = source(right, "t").with_columns(eval(suggested, {"pl": pl}))
    if not isinstance(left, pl.Enum):  # the suggestion there is a text on both sides
        assert source(left).join(made, on="v").schema["v"] == left
    with pytest.raises(QueryError, match=r"a key has one type: use with_columns\(pl.col\('v'\)"):
        sequence("CorrelationKey(v, EQUAL)", left, right)


@pytest.mark.parametrize("name", APART)
@pytest.mark.parametrize("operator", ["=", "<"])
def test_what_cannot_be_compared_is_rejected(name, operator):
    with pytest.raises(CedrError, match=r"replace_time_zone|must have compatible types"):
        sequence(f"x.v {operator} y.v", *APART[name])


def test_times_with_and_without_a_zone_are_not_compared_in_expressions():
    both = cedr.source("s", {"a": pl.Datetime("us"), "b": pl.Datetime("us", "UTC")}, vs="ts")
    with pytest.raises(QueryError, match=r'dt.replace_time_zone\("..."\) on those without'):
        both.where(pl.col("a") < pl.col("b"))
