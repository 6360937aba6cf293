"""The table operators: lists of rows in, a list of rows out. Set operators give each row once."""

from collections.abc import Callable, Sequence
from typing import Any

from cedr.temporal.row import Row, order_key

Rows = Sequence[Row]


def select(rows: Rows, predicate: Callable[[Row], bool]) -> list[Row]:
    return [t for t in rows if predicate(t)]


def project(rows: Rows, names: Sequence[str]) -> list[Row]:
    return [t.pick(*names) for t in rows]


def distinct(rows: Rows) -> list[Row]:
    return list(dict.fromkeys(rows))


def sort(rows: Rows, by: str) -> list[Row]:
    return sorted(rows, key=lambda t: (order_key(t[by]), order_key(t)))


def group_by(rows: Rows, keys: Sequence[str], **aggregates: Callable[[Rows], Any]) -> list[Row]:
    groups: dict[Row, list[Row]] = {}
    for t in rows:
        groups.setdefault(t.pick(*keys), []).append(t)
    return [key.replace(**{name: f(members) for name, f in aggregates.items()}) for key, members in groups.items()]


def union(left: Rows, right: Rows) -> list[Row]:
    return distinct([*left, *right])


def intersect(left: Rows, right: Rows) -> list[Row]:
    return distinct([t for t in left if t in right])


def difference(left: Rows, right: Rows) -> list[Row]:
    return distinct([t for t in left if t not in right])


def join(left: Rows, right: Rows, keys: Sequence[str]) -> list[Row]:
    return [merge(t, u) for t in left for u in right if t.pick(*keys) == u.pick(*keys)]


def merge(left: Row, right: Row) -> Row:
    return right.replace(**left)
