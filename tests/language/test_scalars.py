"""Scalar expressions: random ones have the meaning of SQL, times and functions behave as documented."""

import datetime as dt
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from language import scalars
from language.scalars import COLUMNS, NUMBERS, ROWS, TEXTS, TRUTHS, meaning

import cedr
from cedr import api
from cedr.syntax import tree
from cedr.syntax.functions import FUNCTIONS
from cedr.syntax.show import show

table, in_micros = (api.source("t", COLUMNS, vs="vs", times=cedr.Times(unit=unit)) for unit in (None, "us"))
ORDER = {"vs": pl.Int64, **COLUMNS}


def values(text: str, rows: list[dict]) -> list:
    """What SELECT makes of each row, in the order of the rows."""
    stream = cedr.query(f"EVENT q SELECT {text} AS value FROM t", in_micros)
    frame = pl.DataFrame([{"vs": n, **row} for n, row in enumerate(rows)], schema=ORDER)
    return stream.run(frame).table()["value"].to_list()


NO_VALUES = dict.fromkeys(COLUMNS)
HALF = tree.ParsedNumber("0.5")
FALLBACK = tree.ParsedCall("coalesce", (tree.ParsedColumn(None, "i"), HALF))


@settings(max_examples=settings.default.max_examples * 2)
@example(tree.ParsedBinary("=", HALF, FALLBACK), [NO_VALUES, NO_VALUES])  # polars gave one row for two
@example(tree.ParsedCall("nullif", (HALF, FALLBACK)), [NO_VALUES, NO_VALUES])
@given(st.one_of(NUMBERS, TEXTS, TRUTHS), st.lists(ROWS, min_size=1, max_size=4))
def test_expressions_have_the_meaning_of_sql(node, rows):
    assert values(show(node), rows) == [meaning(node, row) for row in rows]


@given(TRUTHS, st.lists(ROWS, min_size=1, max_size=4))
def test_where_keeps_what_is_true(node, rows):
    """What is missing is not true."""
    frame = pl.DataFrame([{"vs": n, **row} for n, row in enumerate(rows)], schema=ORDER)
    kept = cedr.query(f"EVENT q SELECT i FROM t WHERE {show(node)}", table).run(frame).table()["vs"].to_list()
    assert kept == [n for n, row in enumerate(rows) if meaning(node, row) is True]


@pytest.mark.parametrize("sign", ["=", "<>", "<", "<=", ">", ">="])
def test_a_constant_may_stand_on_either_side(sign):
    rows = [{**NO_VALUES, "i": i} for i in (1, 2, 3, None)]
    two, i = tree.ParsedNumber("2"), tree.ParsedColumn(None, "i")
    for text, sides in ((f"2 {sign} i", (two, i)), (f"i {sign} 2", (i, two)), (f"1 + 1 {sign} i", (two, i))):
        assert values(text, rows) == [meaning(tree.ParsedBinary(sign, *sides), row) for row in rows]


NOON = dt.datetime(2024, 1, 31, 12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7 / 2", 3.5),
        ("7 % 4", 3),
        ("MOD(7, 4)", 3),
        ("2 + 3 * 4 - 1", 13),
        ("-(2 + 3)", -5),
        ("ROUND(2.567, 2)", 2.57),
        ("ROUND(2.5)", 2.0),
        ("FLOOR(2.5) + CEIL(2.5)", 5.0),
        ("SQRT(9) + POWER(2, 3)", 11.0),
        ("SIGN(-4.0)", -1.0),
        ("LOG10(1000) + LN(EXP(2))", 5.0),
        ("LEAST(3, 1, 2)", 1),
        ("LOWER('AbC') || TRIM('  x ')", "abcx"),
        ("SUBSTRING('machine', 2, 3)", "ach"),
        ("SUBSTRING('machine', 6)", "ne"),
        ("REPLACE('a-b-c', '-', '+')", "a+b+c"),
        ("CONTAINS('a.b', '.')", True),
        ("ENDS_WITH('ab', 'b')", True),
        ("CASE 2 WHEN 1 THEN 'one' WHEN 2 THEN 'two' END", "two"),
        ("CAST('12' AS INT) + CAST(1.9 AS INT)", 13),
        ("CAST('no number' AS INT)", None),
        ("CAST(5 AS TEXT)", "5"),
        ("CAST('TRUE' AS BOOLEAN)", True),
        ("CAST('2024-01-31 12:00:00' AS TIMESTAMP)", NOON),
        ("TIMESTAMP(1706702400000000)", NOON),
        ("TIMESTAMP '2024-01-31 12:00' - TIMESTAMP '2024-01-31'", dt.timedelta(hours=12)),
        ("TIMESTAMP '2024-01-31 13:00+01:00'", NOON),
        ("TIMESTAMP '2024-01-31' + 1 day 2 hours", dt.datetime(2024, 2, 1, 2)),
        ("90 minutes / 2", dt.timedelta(minutes=45)),
        ("5 + 1 ms", 1005),
        ("5000 / 1 ms", 5.0),
        ("2 * 1 ms", dt.timedelta(milliseconds=2)),
        ("YEAR(TIMESTAMP '2024-01-31') + MONTH(TIMESTAMP '2024-01-31') + DAY(TIMESTAMP '2024-01-31')", 2056),
        ("HOUR(TIMESTAMP '2024-01-31 12:34:56') + MINUTE(TIMESTAMP '2024-01-31 12:34:56')", 46),
        ("SECOND(TIMESTAMP '2024-01-31 12:34:56')", 56),
        ("1706702400000000 = TIMESTAMP '2024-01-31 12:00'", True),
        ("'it''s' LIKE 'it_s'", True),
    ],
)
def test_functions_and_times(text, expected):
    (found,) = values(text, [NO_VALUES])
    assert found == pytest.approx(expected) if isinstance(expected, float) else found == expected


def test_all_functions_are_tried():
    here = Path(__file__).read_text() + Path(scalars.__file__).read_text()
    for name in FUNCTIONS:
        assert f"{name.upper()}(" in here or f'calls("{name}"' in here
