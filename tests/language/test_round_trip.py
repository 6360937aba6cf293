"""What is parsed, shown and parsed again is the same; and no text whatsoever gives anything but a query or an error."""

import random

import polars as pl
import pytest
from hypothesis import given
from language.texts import VALID, exchanged, mutated, soup
from language.trees import SCRIPTS

import cedr
from cedr import Stream, api
from cedr.syntax.errors import LanguageError
from cedr.syntax.parse import parse
from cedr.syntax.show import show

COLUMNS = {"kind": str, "machine": str, "load": float, "n": int, "on": bool, "at": pl.Datetime("us")}
feed = api.source("feed", COLUMNS, vs="ts", types="kind")
other = api.source("other", COLUMNS, vs="ts")


@given(SCRIPTS)
def test_show_is_understood_as_what_it_shows(script):
    assert parse(show(script)) == script


def compiled(text: str) -> Stream | LanguageError:
    """What becomes of a text; anything else than these two is a failure."""
    try:
        script = parse(text)
        assert parse(show(script)) == script, text
        return cedr.query(text, feed, other)
    except LanguageError as e:
        return e


def test_ten_thousand_random_texts():
    """The seed is fixed, so that a failure can be found again."""
    r = random.Random(7)
    queries = 0
    for number in range(10_000):
        found = compiled((soup, mutated, exchanged)[number % 3](r))
        if isinstance(found, LanguageError):
            assert str(found).startswith(f"line {found.line}, column {found.column}: ")
            assert found.line >= 1
            assert found.column >= 1
        else:
            queries += 1
    assert queries > 400


@pytest.mark.parametrize("text", VALID)
def test_the_texts_they_are_made_of_are_queries(text):
    assert isinstance(compiled(text), Stream)


@given(SCRIPTS)
def test_any_tree_compiles_or_is_refused(script):
    compiled(show(script))


def test_parentheses_leave_no_trace():
    plain = "EVENT a WHEN ANY(A x) WHERE {}x.load{} > 3"
    assert parse(plain.format("(" * 3000, ")" * 3000)) == parse(plain.format("", ""))
    assert parse(plain.format("{(", ")}")) == parse(plain.format("", ""))


@pytest.mark.parametrize(
    "text",
    [
        "EVENT a WHEN ANY(A x) WHERE " + "NOT " * 3000 + "x.on",
        "EVENT a WHEN ANY(A x) WHERE " + "- " * 3000 + "x.load > 3",
        "EVENT a WHEN ANY(A x) WHERE " + "1 + " * 3000 + "x.load > 3",
        "EVENT a WHEN " + "ALL(" * 3000 + "A" + ", 5)" * 3000,
        "EVENT a" + " SELECT n FROM feed UNION" * 3000 + " SELECT n FROM feed",
    ],
    ids=["NOT", "-", "+", "ALL", "UNION"],
)
def test_nesting_has_an_end(text):
    with pytest.raises(LanguageError, match="the query is nested deeper than 100 levels; use several statements"):
        parse(text)


def test_long_conjunctions_are_not_deep():
    parts = " AND ".join(f"x.n <> {n}" for n in range(2000))
    assert len(cedr.query(f"EVENT a WHEN UNLESS(A x, B y, 5 s) WHERE {parts}", feed).plan.where) == 2000
