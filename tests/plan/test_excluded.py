"""What a select's predicate excludes: never more than the truth, and for simple predicates all of it."""

from datetime import UTC, date, datetime, time, timedelta
from functools import reduce
from operator import and_

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr.columnar.promises import NONE
from cedr.plan.excluded import excluded
from cedr.temporal.punctuation import Range, punctuation
from cedr.temporal.time import INF, MIN

SCHEMA = {"n": pl.Int64(), "t": pl.String(), "x": pl.Float64(), "d": pl.Date(), "when": pl.Datetime("ms")}
n, t, x, d = (pl.col(name) for name in "ntxd")

numbers = st.integers(-3, 3)
texts = st.text("ab", max_size=2)


def comparisons(column, values):
    one = st.tuples(st.sampled_from(["__eq__", "__lt__", "__le__", "__gt__", "__ge__"]), values)
    between = st.tuples(values, values, st.sampled_from(["both", "left", "right", "none"]))
    return st.one_of(
        one.map(lambda c: getattr(column, c[0])(c[1])),
        one.map(lambda c: getattr(pl.lit(c[1]), c[0])(column)),
        between.map(lambda b: column.is_between(pl.lit(b[0]), pl.lit(b[1]), closed=b[2])),
        st.lists(values, min_size=1, max_size=3).map(lambda vs: column.is_in(vs)),
        st.just(column.is_not_null()),
        st.just(column.is_null()),
        one.map(lambda c: ~getattr(column, c[0])(c[1])),
    )


predicates = st.lists(st.one_of(comparisons(n, numbers), comparisons(t, texts)), min_size=1, max_size=3)
joined = st.one_of(predicates, predicates.map(lambda ps: [reduce(and_, ps)]))


@given(joined, st.lists(st.tuples(st.none() | numbers, st.none() | texts), min_size=1, max_size=12))
def test_nothing_is_excluded_that_the_predicate_lets_through(asked, values):
    frame = pl.DataFrame(values, schema={"n": pl.Int64, "t": pl.String}, orient="row")
    found = excluded(asked, SCHEMA).of(frame)
    passes = frame.select(pl.all_horizontal(*asked).fill_null(False).alias("passes"))["passes"].to_numpy()
    assert not (passes & (found > MIN)).any()


@given(st.lists(comparisons(n, numbers), min_size=1, max_size=3), st.lists(st.none() | numbers, min_size=1))
def test_of_whole_numbers_all_that_one_comparison_stops_is_excluded(asked, values):
    understood = [p for p in asked if "not()" not in str(p) and "is_null" not in str(p)]
    frame = pl.DataFrame({"n": values}, schema={"n": pl.Int64})
    for p in understood:
        passes = frame.select(p.fill_null(False).alias("passes"))["passes"].to_numpy()
        assert ((excluded([p], SCHEMA).of(frame) == INF) == ~passes).all()


NULLS = {name: punctuation(**{name: None}) for name in SCHEMA}
LAST = datetime(2024, 1, 1)
CASES = {
    "hour == 8": (n == 8, {punctuation(n=Range(None, 7)), punctuation(n=Range(9, None)), NULLS["n"]}),
    "a list": (
        n.is_in([3, 1]),
        {punctuation(n=Range(None, 0)), punctuation(n=2), punctuation(n=Range(4, None)), NULLS["n"]},
    ),
    "the other way round": (pl.lit(3) > n, {punctuation(n=Range(3, None)), NULLS["n"]}),
    "a text": (t <= "m", {punctuation(t=Range("m\0", None)), NULLS["t"]}),
    "from a text on": (t >= "m", {NULLS["t"]}),
    "a date": (d < date(2024, 5, 1), {punctuation(d=Range(date(2024, 5, 1), None)), NULLS["d"]}),
    "a time": (
        pl.col("when") >= LAST,
        {punctuation(when=Range(None, LAST - timedelta(milliseconds=1))), NULLS["when"]},
    ),
    "a time finer than the column": (pl.col("when") >= LAST + timedelta(microseconds=5), {NULLS["when"]}),
    "a double": (x > 1.5, {NULLS["x"]}),
    "a whole number held against a double": (n > 1.5, {NULLS["n"]}),
    "not understood": (n % 2 == 0, set()),
    "two columns": (n > x, set()),
    "or": ((n > 1) | (n < 0), set()),
    "missing": (n.is_null(), set()),
    "past all numbers": (n > 2**63 - 1, {NULLS["n"]}),
}


@pytest.mark.parametrize("name", CASES)
def test_excluded(name):
    predicate, expected = CASES[name]
    assert set(excluded([predicate], SCHEMA)) == expected


def test_a_conjunction_excludes_what_each_part_does():
    found = excluded([(n > 1) & (n < 5) & (t == "a")], SCHEMA)
    assert set(found) == {
        punctuation(n=Range(None, 1)),
        punctuation(n=Range(5, None)),
        punctuation(t=Range("a\0", None)),
        NULLS["n"],
        NULLS["t"],
    }


def test_columns_of_other_types_and_zones_exclude_nothing_but_the_missing():
    schema = {"z": pl.Datetime("us", "UTC"), "b": pl.Boolean(), "l": pl.List(pl.Int64()), "at": pl.Time()}
    assert excluded([pl.col("b") == True], schema).schemes == {("b",)}  # noqa: E712
    assert set(excluded([pl.col("z") < datetime(2024, 1, 1, tzinfo=UTC)], schema)) == {
        punctuation(z=Range(datetime(2024, 1, 1, tzinfo=UTC), None)),
        punctuation(z=None),
    }
    assert excluded([pl.col("l").is_not_null()], schema) is NONE
    assert len(excluded([pl.col("at") > time(8)], schema)) == 2
