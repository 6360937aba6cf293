"""Every type in every role, in this process: it works, or it is rejected when the query is built."""

import pytest
from matrix import cells
from matrix.roles import ROLES
from matrix.values import COLUMNS

NUMERICS = "sums of large integers and of decimals are inexact"
KNOWN = {
    **{("sum", kind): NUMERICS for kind in ("Int64", "UInt64", "Decimal(10, 2)", "Decimal(38, 0)", "Decimal(38, 10)")},
    **{("avg", kind): NUMERICS for kind in ("Int64", "UInt64", "Decimal(10, 2)", "Decimal(38, 0)", "Decimal(38, 10)")},
    **{("stddev", kind): NUMERICS for kind in ("UInt64", "Float64", "Decimal(38, 0)", "Decimal(38, 10)")},
}
"""Cells that are wrong today, and why. A cell that becomes right must leave this list."""

CELLS = [
    pytest.param(
        role, kind, marks=pytest.mark.xfail(strict=True, reason=KNOWN[role, kind]) if (role, kind) in KNOWN else ()
    )
    for role in ROLES
    for kind in COLUMNS
]


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize(("role", "kind"), CELLS)
def test_cell(role, kind):
    values = COLUMNS[kind]
    built = cells.build(ROLES[role], values.dtype)
    if isinstance(built, str):
        assert "'v'" in built or "(v)" in built or 'col("v")' in built, f"the reason names the column: {built}"
        assert cells.suggests(built) or role in ("sum", "avg", "stddev"), (
            f"the reason ends with what would be right: {built}"
        )
        return
    for size in (10_000, 1):
        cells.check(built, ROLES[role], values, chunk_size=size)
