"""Generated conditions are long; they work, or are refused with advice, but end in no RecursionError."""

import operator
from functools import reduce

import polars as pl
import pytest

import cedr
from cedr.plan.schema import conjuncts
from cedr.temporal.errors import QueryError

feed = cedr.source("s", {"v": int}, vs="t")
table = pl.DataFrame({"t": [1, 2, 3], "v": [1, 2, 3]})


@pytest.mark.parametrize(
    "text",
    [
        "EVENT P WHEN s x WHERE {} OUTPUT x.v",
        "EVENT P WHEN SEQUENCE(s x, s y, 5) WHERE {} OUTPUT x.v",
        "EVENT P SELECT x.v FROM s x WHERE {}",
    ],
)
def test_many_alternatives_in_the_language(text):
    many = text.format(" OR ".join(f"x.v = {i}" for i in range(2, 2000)))
    few = text.format("x.v >= 2")
    assert cedr.query(many, feed).run(table).history() == cedr.query(few, feed).run(table).history()


def test_many_conditions():
    found = feed.where(reduce(operator.and_, [pl.col("v") != i for i in range(2, 400)]))
    assert found.run(table).table()["v"].to_list() == [1]
    assert len(found.explain()) > 0


def test_too_deep_an_expression_is_refused_with_advice():
    with pytest.raises(QueryError, match=r"nested deeper than 1000 steps; for many alternatives use"):
        feed.where(reduce(operator.or_, [pl.col("v") == i for i in range(3000)]))
    with pytest.raises(QueryError, match="a CASE has at most 500 WHENs"):
        cedr.query(
            "EVENT P SELECT CASE " + " ".join(f"WHEN v = {i} THEN {i}" for i in range(600)) + " END AS w FROM s", feed
        )


def test_conjuncts_keep_their_order():
    parts = [pl.col("v") > i for i in range(5)]
    found = conjuncts(reduce(operator.and_, parts))
    assert [str(part) for part in found] == [str(part) for part in parts]
    either = (parts[0] & parts[1]) | parts[2]
    assert [str(part) for part in conjuncts(either & parts[3])] == [str(either), str(parts[3])]
