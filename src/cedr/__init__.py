"""cedr: consistent streaming through time.

The temporal model is imported at once; what needs polars and compiled code (`source`, the aggregates) when it is used.
"""

from typing import TYPE_CHECKING, Any

from cedr.temporal import (
    END,
    INF,
    MIDDLE,
    STRONG,
    WEAK,
    Adjust,
    CedrError,
    CedrWarning,
    Consistency,
    Cti,
    Event,
    ExternalCti,
    History,
    Insert,
    Interval,
    Row,
    canonical,
    retract,
)
from cedr.temporal.punctuation import OneOf, Punctuation, Range, punctuation

if TYPE_CHECKING:
    from cedr import sinks
    from cedr.api import (
        aggregate,
        avg,
        count,
        first,
        last,
        max,
        median,
        min,
        quantile,
        source,
        stddev,
        sum,
    )
    from cedr.graphs import causality_chains, connected_components, reachability, shortest_paths
    from cedr.language.query import queries, query
    from cedr.operators.merge.policy import Policy
    from cedr.runtime.spark.files.settings import files
    from cedr.runtime.spark.session import spark_session
    from cedr.stream import Stream

__version__ = "0.1.0"

API = ("aggregate", "avg", "count", "first", "last", "max", "median", "min", "quantile", "source", "stddev", "sum")

GRAPHS = ("causality_chains", "connected_components", "reachability", "shortest_paths")


def __getattr__(name: str) -> Any:
    if name == "sinks":
        import importlib

        return importlib.import_module("cedr.sinks")
    if name == "files":
        from cedr.runtime.spark.files.settings import files

        return files
    if name == "spark_session":
        from cedr.runtime.spark.session import spark_session

        return spark_session
    if name in ("queries", "query"):
        from cedr.language import query as language

        return getattr(language, name)
    if name in API:
        from cedr import api

        return getattr(api, name)
    if name in GRAPHS:
        from cedr import graphs

        return getattr(graphs, name)
    if name == "Policy":
        from cedr.operators.merge.policy import Policy

        return Policy
    if name == "Stream":
        from cedr.stream import Stream

        return Stream
    raise AttributeError(f"module 'cedr' has no attribute {name!r}")


__all__ = [
    "END",
    "INF",
    "MIDDLE",
    "STRONG",
    "WEAK",
    "Adjust",
    "CedrError",
    "CedrWarning",
    "Consistency",
    "Cti",
    "Event",
    "ExternalCti",
    "History",
    "Insert",
    "Interval",
    "OneOf",
    "Policy",
    "Punctuation",
    "Range",
    "Row",
    "Stream",
    "aggregate",
    "avg",
    "canonical",
    "causality_chains",
    "connected_components",
    "count",
    "files",
    "first",
    "last",
    "max",
    "median",
    "min",
    "punctuation",
    "quantile",
    "queries",
    "query",
    "reachability",
    "retract",
    "shortest_paths",
    "sinks",
    "source",
    "spark_session",
    "stddev",
    "sum",
]
