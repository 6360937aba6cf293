"""The stream model of the papers: time, intervals, elements, histories, equivalence, consistency. Pure Python."""

from cedr.temporal.consistency import MIDDLE, STRONG, WEAK, Consistency, SyncPoint, sync_points
from cedr.temporal.element import END, Adjust, Cti, Data, Element, ExternalCti, Insert, Stream, retract
from cedr.temporal.errors import CedrError, CedrWarning, DivergenceError, LifetimeError, PayloadError, QueryError, StreamError, TimeError
from cedr.temporal.history import Event, History
from cedr.temporal.interval import Interval
from cedr.temporal.row import Row
from cedr.temporal.stream import (
    Relation,
    canonical,
    closed,
    closed_at,
    closed_up_to,
    equivalent,
    ordered,
    perfect,
    relations,
    stream_table,
    up_to,
    validate,
    violations,
)
from cedr.temporal.time import INF, MIN
from cedr.temporal.tritemporal import HistoryRow, HistoryTable, Statement, Version, bitemporal, known_at

__all__ = [
    "END",
    "INF",
    "MIDDLE",
    "MIN",
    "STRONG",
    "WEAK",
    "Adjust",
    "CedrError",
    "CedrWarning",
    "DivergenceError",
    "Consistency",
    "Cti",
    "Data",
    "Element",
    "Event",
    "ExternalCti",
    "History",
    "HistoryRow",
    "HistoryTable",
    "Insert",
    "Interval",
    "LifetimeError",
    "PayloadError",
    "QueryError",
    "Relation",
    "Row",
    "Statement",
    "Stream",
    "StreamError",
    "SyncPoint",
    "TimeError",
    "Version",
    "bitemporal",
    "canonical",
    "closed",
    "closed_at",
    "closed_up_to",
    "equivalent",
    "known_at",
    "ordered",
    "perfect",
    "relations",
    "retract",
    "stream_table",
    "sync_points",
    "up_to",
    "validate",
    "violations",
]
