"""A plan as a query of cedr: one function per operator."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import polars as pl

import cedr
from cedr.api import source_of_keys
from random_plans.expressions import predicate, value
from random_plans.tables import TIME_TYPES, Shape, source_arguments

Stream = cedr.Stream
Node = Mapping[str, Any]


def query(plan: list[dict[str, Any]], shape: Shape) -> Stream:
    """The stream of the last node."""
    sources: dict[str, Stream] = {}
    found: list[Stream] = []
    for node in plan:
        if node["op"] == "source":
            name = node["name"]
            sources.setdefault(name, source_of_keys(name, shape.schema, **source_arguments(shape)))
            found.append(sources[name])
        else:
            found.append(OPERATORS[node["op"]](node, *(found[i] for i in node["of"])))
    return found[-1]


def where(node: Node, stream: Stream) -> Stream:
    return stream.where(predicate(node["p"]))


def project(node: Node, stream: Stream) -> Stream:
    return stream.select(*(value(e).alias(name) for name, e in node["columns"]))


def alter(node: Node, stream: Stream) -> Stream:
    grid, times = node["grid"], node["times"]
    start = pl.col("vs") // grid * grid if grid else None
    progress = pl.col("t") // grid * grid if grid else pl.col("t")
    return stream.alter_lifetime(start, pl.col("length") * times, progress)


def aggregate(node: Node, stream: Stream) -> Stream:
    found = {name: one_aggregate(*what) for name, what in node["aggregates"]}
    return stream.group_by(*node["by"]).agg(**found) if node["by"] else stream.agg(**found)


def one_aggregate(kind: str, column: str | None = None, q: str = "1/2") -> Any:
    if column is None:
        return cedr.count()
    if kind == "quantile":
        return cedr.median(column) if q == "1/2" else cedr.quantile(column, float(Fraction(q)))
    if kind == "range":
        return cedr.aggregate(column, function=lambda f: spread(f[column]), dtype=pl.Int64)
    return getattr(cedr, kind)(column)


def spread(values: pl.Series) -> Any:
    known = values.drop_nulls().to_list()
    return max(known) - min(known) if known else None


def top_k(node: Node, stream: Stream) -> Stream:
    grouped = stream.group_by(*node["by"]) if node["by"] else stream
    return grouped.top_k(node["k"], node["order"], descending=node["descending"], rank=node["rank"])


def join(node: Node, left: Stream, right: Stream) -> Stream:
    condition = predicate(node["where"]) if node.get("where") else None
    return left.join(right, on=node["on"], how=node["how"], where=condition)


def countdown(node: Node, stream: Stream) -> Stream:
    column = pl.col(node["column"])
    return stream.iterate(lambda rows: rows.where(column > 0).with_columns(column - 1))


def regex(node: Node, stream: Stream) -> Stream:
    low, high = map(predicate, node["steps"])
    return cedr.regex("low+ high", stream, low=low, high=high, by=node["by"], window=node["window"])


def match(node: Node, *streams: Stream) -> Stream:
    return cedr.query(node["text"], **dict(zip(node["types"], streams, strict=True)))


OPERATORS: dict[str, Callable[..., Stream]] = {
    "where": where,
    "project": project,
    "sliding": lambda n, s: s.sliding(n["length"]),
    "moving": lambda n, s: s.moving(n["length"]),
    "hopping": lambda n, s: (
        s.tumbling(n["size"], n["offset"]) if n["size"] == n["hop"] else s.hopping(n["size"], n["hop"], n["offset"])
    ),
    "inserts": lambda n, s: s.inserts(),
    "deletes": lambda n, s: s.deletes(),
    "shift": lambda n, s: s.shift(n["by"]),
    "slice": lambda n, s: s.slice((n["start"], n["end"])),
    "alter": alter,
    "chop": lambda n, s: s.chop(n["period"], n["offset"]),
    "session": lambda n, s: s.session(n["timeout"], by=n["by"]),
    "clip": lambda n, s, other: s.clip(other, on=n["on"]),
    "union": lambda n, s, *others: s.union(*others),
    "difference": lambda n, s, other: s.difference(other),
    "intersect": lambda n, s, other: s.intersect(other),
    "distinct": lambda n, s: s.distinct(),
    "coalesce": lambda n, s: s.coalesce(),
    "join": join,
    "aggregate": aggregate,
    "top_k": top_k,
    "sort": lambda n, s: s.sort(*n["by"]),
    "merge": lambda n, s, *others: s.merge(*others),
    "countdown": countdown,
    "regex": regex,
    "match": match,
}


def settled(stream: Stream, settings: Mapping[str, Any]) -> Stream:
    """The query at the case's level of consistency and latency."""
    if settings.get("block"):
        stream = stream.with_consistency(block=settings["block"])
    if settings.get("level"):
        stream = stream.with_consistency(settings["level"])
    if settings.get("latency"):
        stream = stream.with_latency(settings["latency"])
    return stream


def time_type(shape: Shape) -> pl.DataType:
    return TIME_TYPES[shape.time]
