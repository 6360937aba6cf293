"""Every type in every role, in this process: it works, or it is rejected when the query is built."""

import pytest
from matrix import cells
from matrix.roles import ROLES, rows
from matrix.values import COLUMNS

from cedr.temporal import QueryError


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("role", ROLES)
def test_cell(role, kind):
    values = COLUMNS[kind]
    built = cells.build(ROLES[role], values.dtype)
    if isinstance(built, str):
        assert "'v'" in built or "(v)" in built or 'col("v")' in built, f"the reason names the column: {built}"
        assert cells.suggests(built), f"the reason ends with what would be right: {built}"
        return
    for size in (10_000, 1):
        cells.check(built, ROLES[role], values, chunk_size=size)


@pytest.mark.parametrize("kind", ["Int64", "UInt64", "Decimal(38, 0)"])
def test_a_sum_that_does_not_fit_is_an_error(kind):
    values = COLUMNS[kind].drop_nulls().sort()[-2:]
    query = cells.build(ROLES["sum"], values.dtype)
    with pytest.raises(QueryError, match=r"sum\(v\) is .* which does not fit"):
        query.run(rows(values))
