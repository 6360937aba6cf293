"""cedr: consistent streaming through time."""

from cedr.temporal import (
    END,
    INF,
    MIDDLE,
    STRONG,
    WEAK,
    Adjust,
    CedrError,
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

__version__ = "0.1.0"

__all__ = [
    "END",
    "INF",
    "MIDDLE",
    "STRONG",
    "WEAK",
    "Adjust",
    "CedrError",
    "Consistency",
    "Cti",
    "Event",
    "ExternalCti",
    "History",
    "Insert",
    "Interval",
    "Row",
    "canonical",
    "retract",
]
