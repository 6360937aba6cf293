"""cedr: consistent streaming through time.

`import cedr` loads only the temporal model. Names that need polars and compiled code load on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cedr.secret import Secret
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
    LateWarning,
    Row,
    canonical,
    retract,
)
from cedr.temporal.punctuation import OneOf, Punctuation, Range, punctuation

if TYPE_CHECKING:
    from cedr import sinks
    from cedr.api import source
    from cedr.automata import automaton, regex, step
    from cedr.graphs import causality_chains, connected_components, reachability, shortest_paths
    from cedr.language.query import queries, query
    from cedr.plan.aggregates import (
        aggregate,
        avg,
        count,
        count_distinct,
        first,
        last,
        max,
        median,
        min,
        mode,
        quantile,
        stddev,
        sum,
    )
    from cedr.plan.merge_policy import Policy
    from cedr.replicas.job import Replica
    from cedr.replicas.replicas import Replicas
    from cedr.runtime.spark.driver.session import spark_session
    from cedr.sources.files.settings import files
    from cedr.sources.settings import Progress, Times
    from cedr.stream import Stream

__version__ = "0.1.0"

LAZY = {
    **dict.fromkeys(("aggregate", "avg", "count", "count_distinct", "first", "last", "max"), "cedr.plan.aggregates"),
    **dict.fromkeys(("median", "min", "mode", "quantile", "stddev", "sum"), "cedr.plan.aggregates"),
    **dict.fromkeys(("automaton", "regex", "step"), "cedr.automata"),
    **dict.fromkeys(("causality_chains", "connected_components", "reachability", "shortest_paths"), "cedr.graphs"),
    "Policy": "cedr.plan.merge_policy",
    "Progress": "cedr.sources.settings",
    "Replica": "cedr.replicas.job",
    "Replicas": "cedr.replicas.replicas",
    "Stream": "cedr.stream",
    "Times": "cedr.sources.settings",
    "files": "cedr.sources.files.settings",
    "source": "cedr.api",
    "queries": "cedr.language.query",
    "query": "cedr.language.query",
    "spark_session": "cedr.runtime.spark.driver.session",
}
"""The modules of names that are imported on first use, so that `import cedr` is fast."""


def __getattr__(name: str) -> Any:
    if name == "sinks":
        return import_module("cedr.sinks")
    if name in LAZY:
        return getattr(import_module(LAZY[name]), name)
    raise AttributeError(f"module 'cedr' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


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
    "LateWarning",
    "OneOf",
    "Policy",
    "Progress",
    "Punctuation",
    "Range",
    "Replica",
    "Replicas",
    "Row",
    "Secret",
    "Stream",
    "Times",
    "aggregate",
    "automaton",
    "avg",
    "canonical",
    "causality_chains",
    "connected_components",
    "count",
    "count_distinct",
    "files",
    "first",
    "last",
    "max",
    "median",
    "min",
    "mode",
    "punctuation",
    "quantile",
    "queries",
    "query",
    "reachability",
    "regex",
    "retract",
    "shortest_paths",
    "sinks",
    "source",
    "spark_session",
    "stddev",
    "step",
    "sum",
]
