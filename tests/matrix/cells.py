"""A cell of the matrix: a column of one type in one role either works or is rejected when the query is built."""

from typing import Any

import polars as pl
from matrix.compare import comparable, same_rows
from matrix.roles import Local, Role

from cedr.stream import Stream
from cedr.temporal import CedrError


def build(role: Role, kind: pl.DataType) -> Stream | str:
    """The query, ready to run; or why there is none."""
    try:
        query = role.build(Local(kind))
        query.fragment()
    except CedrError as e:
        return str(e)
    return query


def check(query: Stream, role: Role, values: pl.Series, **options: Any) -> None:
    """The answer is the expected one."""
    found = query.run(role.tables(values), close=role.close, **options)
    assert not found.late().height, found.late()
    if role.ordered:
        changes = found.changelog().drop("change", "vs", "ve", "ve_new")
        assert comparable(changes["id"]) == comparable(role.expected(values)["id"])
    same_rows(found.table().drop("vs", "ve"), role.expected(values))


def suggests(reason: str) -> bool:
    """Errors name the problem, and after a semicolon or a colon the remedy."""
    return ";" in reason
