"""Promises from punctuations, and from a table of keys."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.promises.others import undominated
from cedr.columnar.promises.points import BEFORE, Names, later_of
from cedr.columnar.promises.promises import Promises
from cedr.columnar.promises.steps import unsorted_steps
from cedr.columnar.promises.values import first_from, is_number, is_whole, last_up_to, stored, whole
from cedr.columnar.times import Times
from cedr.temporal.punctuation import Constant, OneOf, Pattern, Punctuation, Range, simple
from cedr.temporal.time import INF, MIN

MANY = 10_000
"""Maximum number of combinations for which lists of several attributes are expanded into points."""

Schema = Mapping[str, pl.DataType]


def promises_of(punctuations: Iterable[Punctuation], schema: Schema) -> Promises:
    """The set of these punctuations; the punctuation about everything is a CTI and not allowed."""
    constants: dict[Names, list[tuple[Any, ...]]] = defaultdict(list)
    ranges: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    others: list[Punctuation] = []
    for p in punctuations:
        assert p.attributes, "the punctuation about everything is a CTI"
        if p.empty or p.before == MIN:
            continue
        name, *more = p.attributes
        choices = [values_of(p[name]) for name in p.attributes]
        if not more and is_whole(schema[name]):
            ranges[name] += ((low, last, p.before) for low, last in pieces(name, p[name], schema[name]))
            if None in (choices[0] or ()):
                constants[(name,)].append((None, p.before))
        elif any(c is None for c in choices) or (more and prod(len(c or ()) for c in choices) > MANY):
            others.append(Punctuation({n: fitted(n, q, schema[n]) for n, q in p.patterns.items()}, p.before))
        else:
            constants[p.attributes] += ((*chosen, p.before) for chosen in product(*(c or () for c in choices)))
    points = {names: points_of(names, rows, schema) for names, rows in constants.items()}
    steps = {name: unsorted_steps(*np.array(rows, dtype=np.int64).T) for name, rows in ranges.items() if rows}
    return Promises(
        {names: table for names, table in points.items() if table.height},
        steps,
        undominated(others),
        {name: schema[name] for name in steps},
    )


def point_promises(table: pl.DataFrame, before: Times) -> Promises:
    """One promise per row of the table: no more payloads that agree with the row before its time."""
    name, *more = names = tuple(sorted(table.columns))
    points = table.select(names).with_columns(pl.Series(BEFORE, before)).filter(pl.col(BEFORE) > MIN)
    if more or not is_whole(kind := table.schema[name]):
        return Promises({names: later_of(points)} if points.height else {})
    numbers, there = whole(points[name], kind)
    numbers, before = numbers[there], points[BEFORE].to_numpy()[there]
    return Promises(
        {} if there.all() else {names: later_of(points.filter(pl.Series(~there)))},
        {name: unsorted_steps(numbers, numbers, before)} if len(numbers) else {},
        kinds={name: kind} if len(numbers) else {},
    )


def points_of(names: Names, rows: list[tuple[Any, ...]], schema: Schema) -> pl.DataFrame:
    *keys, before = zip(*rows, strict=True)
    columns = [stored(name, values, schema[name]) for name, values in zip(names, keys, strict=True)]
    table = pl.DataFrame([column for column, _ in columns]).with_columns(pl.Series(BEFORE, before, dtype=pl.Int64))
    return later_of(table.filter(pl.Series(np.all([held for _, held in columns], axis=0))))


def values_of(p: Pattern) -> list[Any] | None:
    """The values of a constant or list; None for other patterns."""
    match p:
        case Constant(value):
            return [value]
        case OneOf(values):
            return list(values)
    return None


def pieces(name: str, p: Pattern, kind: pl.DataType) -> Iterator[tuple[int, int]]:
    """Ranges of whole numbers, from first to last; there is none for a missing value."""
    match p:
        case Range(low, high):
            ends = [(low, high)]
        case _:
            ends = [(value, value) for value in values_of(p) or () if value is not None]
    for low, high in ends:
        first = MIN if low is None else first_from(name, low, kind)
        last = INF if high is None else last_up_to(name, high, kind)
        if first <= last:
            yield first, last


def fitted(name: str, p: Pattern, kind: pl.DataType) -> Pattern:
    """The pattern, restricted to values that the column can hold."""
    match p:
        case Range(low, high) if kind.is_integer():
            first = None if low is None else first_from(name, low, kind)
            last = None if high is None else last_up_to(name, high, kind)
            return simple(Range(first, last))
        case Range(low, high):
            for end in (low, high):
                if end is not None and not (is_number(end) and kind.is_numeric()):
                    stored(name, [end], kind)
            return p
    values = values_of(p) or []
    return simple(OneOf(v for v, held in zip(values, stored(name, values, kind)[1], strict=True) if held))
