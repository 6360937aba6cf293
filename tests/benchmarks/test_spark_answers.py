"""When two answers of the Spark benchmark are the same, and the message when they are not."""

import polars as pl
import pytest
from peers.answers import disagreement
from peers.data import FLUSH

ANSWER = pl.DataFrame({"k": [1, 1, 2], "n": [3, 4, 5], "s": [0.25, 0.5, 1e6]})


def compare(found: pl.DataFrame) -> str:
    return disagreement("it", found, ANSWER, ("k", "n")) or "agree"


@pytest.mark.parametrize(
    "found",
    [
        ANSWER,
        ANSWER.reverse(),
        ANSWER.select("s", "n", "k"),
        ANSWER.with_columns(pl.col("s") * (1 + 5e-10)),
        ANSWER.cast({"n": pl.UInt32}),
        pl.concat([ANSWER, pl.DataFrame({"k": [FLUSH], "n": [1], "s": [0.0]})]),
    ],
    ids=["same", "another order", "columns in another order", "rounding", "another type", "flush"],
)
def test_the_same_rows_agree(found):
    assert compare(found) == "agree"


@pytest.mark.parametrize(
    ("found", "difference"),
    [
        (ANSWER[:2], "2 rows instead of 3; missing {'k': 2, 'n': 5, 's': 1000000.0}"),
        (pl.concat([ANSWER, ANSWER[:1]]), "4 rows instead of 3; some rows are there more than once"),
        (ANSWER.with_columns(pl.col("s") * (1 + 5e-9)), "3 of 3 rows differ in 's'"),
        (ANSWER.with_columns(n=pl.Series([3, 4, 6])), "1 of 3 rows differ in 'n', the first: {'k': 2, 'n': 6"),
        (ANSWER.with_columns(s=pl.Series([0.25, 0.5, None])), "1 of 3 rows differ in 's'"),
        (ANSWER.with_columns(s=pl.Series([0.25, 0.5, float("nan")])), "1 of 3 rows differ in 's'"),
    ],
    ids=["too few", "too many", "beyond rounding", "exact column", "missing value", "not a number"],
)
def test_other_rows_do_not(found, difference):
    assert difference in compare(found)
