"""What the comparison rests on: its tables keep their promises, cases survive a file, and differences are seen."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from random_plans.case import Case, draw, expect, failure
from random_plans.compare import difference
from random_plans.draw import is_soft
from random_plans.expected import aggregate
from random_plans.kept import load, save, settled
from random_plans.mix import LARGE, PLANS, wanted
from random_plans.reduce import reduced
from random_plans.tables import PAYLOAD, E, S, Shape, make

from cedr.operators.session import SessionOperator


@pytest.mark.parametrize("time", ["int", "us", "zoned"])
@pytest.mark.parametrize("progress", ["delay", "cti", "none"])
def test_canonical_table_is_what_corrections_leave(time, progress) -> None:
    shape = Shape(3_000, time=time, columns=tuple(PAYLOAD), endless=True, progress=progress)
    table = make(shape, np.random.default_rng(5))
    assert difference(table.canonical, settled(table.delivered, shape), []) is None
    corrected = table.delivered.filter(pl.col("ve_new").is_not_null())
    assert corrected.height > 200
    assert corrected.filter(pl.col("ve_new") == pl.col("vs")).height > 50
    assert table.delivered.height > 3_000


def test_mix_is_what_the_bars_ask_for() -> None:
    cases = [wanted(n) for n in range(PLANS)]
    assert sum(c.rows == LARGE for c in cases) == 50
    assert min(c.rows for c in cases) == 10_000
    assert {c.slicing for c in cases} == {0, 1, 1_000, 50_000, "mixed"}


def test_same_seed_same_case(tmp_path) -> None:
    one, other = draw(11, 500, 100), draw(11, 500, 100)
    assert one.plan == other.plan
    save(one, tmp_path / "case.json", "")
    again = load(tmp_path / "case.json")
    assert again.plan == one.plan
    assert difference(expect(one), expect(again), one.soft) is None


ROWS = pl.DataFrame({"_s": [1, 1, 2], "_e": [3, 3, 4], "a": [1, None, 2], "x": [0.1, 0.2, 0.3]})


@pytest.mark.parametrize(
    ("found", "equal"),
    [
        (ROWS.reverse(), True),
        (ROWS.with_columns(x=pl.col("x") * (1 + 1e-13)), True),
        (ROWS.with_columns(x=pl.col("x") + 1e-3), False),
        (ROWS.with_columns(_e=pl.Series([3, 3, 5])), False),
        (ROWS.with_columns(a=pl.col("a").fill_null(0)), False),
        (pl.concat([ROWS, ROWS[:1]]), False),
        (ROWS[:2], False),
        (ROWS.drop("a"), False),
    ],
)
def test_differences_are_seen(found, equal) -> None:
    assert (difference(ROWS, found, ["x"]) is None) == equal


def test_wrong_operator_is_found_and_reduced(monkeypatch) -> None:
    """Sessions that end a chronon late."""
    shape = Shape(60)
    plan = [
        {"op": "source", "name": "A"},
        {"op": "where", "of": [0], "p": ["<", "v", 8]},
        {"op": "session", "of": [1], "timeout": 20, "by": ["k"]},
        {"op": "distinct", "of": [2]},
    ]
    case = Case(0, shape, {"A": make(shape, np.random.default_rng(1))}, plan, 10)
    assert failure(case) is None
    right = SessionOperator.__init__

    def longer(self, schema, timeout, *others, **more):
        right(self, schema, timeout + 1, *others, **more)

    monkeypatch.setattr(SessionOperator, "__init__", longer)
    assert failure(case) is not None
    small = reduced(case, 600)
    assert failure(small) is not None
    assert small.rows <= 2, "one event, and perhaps its correction"
    assert [node["op"] for node in small.plan] == ["source", "session"]


def test_sums_and_means_of_decimals_are_exact():
    """A cent of ten billion is less than the tolerance for floats."""
    cents = [100_000_000_001, 33, -7, 2_000_000_000_003]
    values = pl.Series([Decimal(c).scaleb(-2) for c in cents], dtype=pl.Decimal(14, 2))
    frame = pl.DataFrame({S: [1] * 4, E: [9] * 4, "d": values})
    node = {"by": [], "aggregates": [["total", ["sum", "d"]], ["mean", ["avg", "d"]]]}
    found = aggregate(node, frame, 100)
    assert found["total"].to_list() == [Decimal(sum(cents)).scaleb(-2)]
    assert found["mean"].to_list() == [float(Fraction(sum(cents), 400))]
    wrong = found.with_columns(pl.col("total") + Decimal("0.01"))
    assert difference(found, wrong, ["total"]) is None
    assert difference(found, wrong, []).startswith("values")


def test_what_is_soft():
    """Only what two right programs may round differently."""
    soft = {
        (what, c) for what in ("sum", "avg", "stddev", "max") for c, kind in PAYLOAD.items() if is_soft(what, c, kind)
    }
    assert {c for what, c in soft if what == "sum"} & {"b", "d", "f", "v"} == set()
    assert ("avg", "d") not in soft
    assert soft >= {("sum", "r"), ("avg", "r"), ("avg", "b"), ("stddev", "d")}
    assert not any(what == "max" for what, _ in soft)
