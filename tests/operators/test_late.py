"""The message of a row that breaks a promise: the most specific promise, and always the same one."""

from itertools import permutations

import numpy as np
import polars as pl
import pytest

from cedr.columnar.promises import promises_of
from cedr.operators.late import broken_promises
from cedr.temporal.punctuation import punctuation

SCHEMA = {name: pl.Int64() for name in "abcdefg"}
ROWS = pl.DataFrame({name: [1] for name in SCHEMA}, schema=SCHEMA)


@pytest.mark.parametrize("columns", [*permutations("abc"), tuple("abcdefg")])
def test_of_promises_that_are_as_specific_the_last_by_name_is_named(columns):
    """In whatever order they came; seven of them are hardly ever in order by chance."""
    known = promises_of([punctuation(10, a=1, b=1), *(punctuation(10, **{name: 1}) for name in columns)], SCHEMA)
    texts = broken_promises(known, ROWS, np.array([10]))
    assert texts.to_list() == [f"it was promised: no more {max(columns)}=1 before 10"]
