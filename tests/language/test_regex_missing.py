"""Missing values in the steps of REGEX: conditions on registers are true, false or neither, exactly as in SQL.

`language.scalars.meaning` evaluates random expressions one row at a time; the steps of a regular expression must agree,
whether registers and columns are there or missing.
"""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from language.scalars import COLUMNS, ROWS, SIGNS, calls, column, meaning, truth

import cedr
from cedr import api
from cedr.syntax import tree
from cedr.syntax.show import show

feed = api.source("t", {**COLUMNS, "place": int}, vs="place")
SCHEMA = {"place": pl.Int64, **COLUMNS}

LEAVES = st.one_of(
    st.sampled_from(["r", "q", "i", "f"]).flatmap(column), st.integers(0, 3).map(lambda n: tree.ParsedNumber(str(n)))
)


def numbers(depth: int) -> st.SearchStrategy[tree.ParsedScalar]:
    if not depth:
        return LEAVES
    number, condition = numbers(depth - 1), truths(depth - 1)
    whens = st.lists(st.builds(tree.ParsedWhen, condition, number), min_size=1, max_size=2).map(tuple)
    return st.one_of(
        LEAVES,
        st.builds(tree.ParsedMinus, number),
        st.builds(tree.ParsedBinary, st.sampled_from("+-*"), number, number),
        *(calls(name, number, number) for name in ("coalesce", "greatest", "nullif")),
        calls("abs", number),
        st.builds(tree.ParsedCase, st.none(), whens, st.none() | number),
    )


def truths(depth: int) -> st.SearchStrategy[tree.ParsedScalar]:
    number = numbers(max(depth - 1, 0))
    simple = st.one_of(
        column("b"),
        st.builds(tree.ParsedBinary, SIGNS, number, number),
        st.builds(tree.ParsedBinary, SIGNS, column("s"), st.just(tree.ParsedText("a"))),
        st.builds(tree.ParsedIsNull, number, truth),
        st.builds(tree.ParsedBetween, number, number, number, truth),
        st.builds(tree.ParsedIn, number, st.lists(number, min_size=1, max_size=3).map(tuple), truth),
    )
    if not depth:
        return simple
    inner = truths(depth - 1)
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        simple, st.builds(tree.ParsedNot, inner), st.builds(tree.ParsedAnd, several), st.builds(tree.ParsedOr, several)
    )


NUMBERS, TRUTHS = numbers(2), truths(3)


@settings(max_examples=settings.default.max_examples * 2)
@given(first=NUMBERS, condition=TRUTHS, second=NUMBERS, rows=st.lists(ROWS, min_size=2, max_size=6))
def test_steps_have_the_meaning_of_sql(first, condition, second, rows):
    text = f"""EVENT m WHEN REGEX(one two, 9) OVER t REGISTER r = 1.0, q = 2
        DEFINE one AS TRUE SET r = {show(first)} DEFINE two AS {show(condition)} SET q = {show(second)}"""
    frame = pl.DataFrame([{"place": n, **row} for n, row in enumerate(rows)], schema=SCHEMA)
    found = cedr.query(text, feed).run(frame).table().sort("begin").select("begin", "r", "q").rows()
    assert found == list(expected(first, condition, second, rows))


def expected(first, condition, second, rows):
    for n in range(len(rows) - 1):
        r = meaning(first, {**rows[n], "r": 1.0, "q": 2.0})
        known = {**rows[n + 1], "r": r, "q": 2.0}
        if meaning(condition, known) is True:
            yield n, r, meaning(second, known)


events = api.source("events", {"kind": str, "v": int}, vs="ts")
TICKS = pl.DataFrame({"ts": [0, 1, 2], "kind": ["S", "X", "Y"], "v": [5, None, None]})


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ("kind = 'X' OR v > r", [(0, 1, 5)]),
        ("v IS NULL OR v > r", [(0, 1, 5)]),
        ("v > r", []),
        ("NOT v > r", []),
        ("kind = 'X' AND v > r", []),
        ("NOT (kind = 'Z' AND v > r)", [(0, 1, 5)]),
        ("v IN (r, 5)", []),
        ("r IS NOT NULL", [(0, 1, 5)]),
        ("COALESCE(v, r) = 5", [(0, 1, 5)]),
    ],
)
def test_a_missing_value_next_to_a_register(condition, taken):
    steps = f"DEFINE a AS kind = 'S' SET r = v DEFINE b AS {condition}"
    text = f"EVENT m WHEN REGEX(a b, 9) OVER events REGISTER r = 0 {steps}"
    assert cedr.query(text, events).run(TICKS).table().select("begin", "end", "r").rows() == taken


def test_a_register_set_from_a_missing_value_is_missing_until_it_is_set():
    text = """EVENT m WHEN REGEX(a b c, 9) OVER events REGISTER r = 0
        DEFINE a AS kind = 'S' SET r = NULL DEFINE b AS r IS NULL SET r = v DEFINE c AS r IS NULL SET r = 7"""
    assert cedr.query(text, events).run(TICKS).table().select("begin", "end", "r").rows() == [(0, 2, 7)]
