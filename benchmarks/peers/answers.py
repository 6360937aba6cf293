"""Two answers are equal if they have the same rows: exact columns equal, the others within 1e-9 of each other."""

import polars as pl

from peers.data import FLUSH

TOLERANCE = 1e-9


def disagreement(
    name: str, found: pl.DataFrame, expected: pl.DataFrame, exact: tuple[str, ...], key: str = "k"
) -> str | None:
    """As text, with an example; None if the answers agree. What the flush led to is left out: its key is FLUSH."""
    columns = expected.columns
    found, expected = (
        t.filter(pl.col(key) != FLUSH).select(columns).cast(expected.schema).sort(exact) for t in (found, expected)
    )
    if found.height != expected.height:
        return f"{name}: {found.height:,} rows instead of {expected.height:,}; {only_in_one(found, expected, exact)}"
    for column in columns:
        wrong = differs(found[column], expected[column], column in exact)
        if wrong.any():
            first = wrong.arg_max()
            return (
                f"{name}: {wrong.sum():,} of {found.height:,} rows differ in {column!r}, the first: "
                f"{found.row(first, named=True)} instead of {expected.row(first, named=True)}"
            )
    return None


def differs(found: pl.Series, expected: pl.Series, exact: bool) -> pl.Series:
    if exact:
        return found.ne_missing(expected)
    pair = pl.DataFrame({"found": found, "expected": expected})
    near = (pl.col("found") - pl.col("expected")).abs() <= TOLERANCE * pl.col("expected").abs()
    return pair.select((~near).fill_null(True))["found"]


def only_in_one(found: pl.DataFrame, expected: pl.DataFrame, exact: tuple[str, ...]) -> str:
    more = found.join(expected, on=exact, how="anti", nulls_equal=True)
    less = expected.join(found, on=exact, how="anti", nulls_equal=True)
    examples = [f"{what} {t.row(0, named=True)}" for what, t in (("too much", more), ("missing", less)) if t.height]
    return ", ".join(examples) or "some rows are there more than once"
