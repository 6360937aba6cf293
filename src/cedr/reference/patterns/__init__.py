"""The pattern operators of the CEDR language, on canonical histories."""

from cedr.reference.patterns.atmost import ATMOST, ReferenceAtMost
from cedr.reference.patterns.event_type import ReferenceEventType
from cedr.reference.patterns.instance import Ids, Instance, idgen, primitives
from cedr.reference.patterns.negation import (
    CANCEL_WHEN,
    NOT,
    UNLESS,
    ReferenceCancelWhen,
    ReferenceNot,
    ReferenceUnless,
)
from cedr.reference.patterns.pattern import ReferencePattern, ReferenceScope
from cedr.reference.patterns.predicates import (
    ReferenceAttributeEqual,
    ReferenceCondition,
    ReferenceCorrelationKey,
    ReferencePredicate,
)
from cedr.reference.patterns.query import ReferencePatternQuery
from cedr.reference.patterns.sequence import ALL, ANY, ATLEAST, SEQUENCE, Ordered, ReferenceAtLeast

__all__ = [
    "ALL",
    "ANY",
    "ATLEAST",
    "ATMOST",
    "CANCEL_WHEN",
    "NOT",
    "OPERATORS",
    "SEQUENCE",
    "UNLESS",
    "Ids",
    "Instance",
    "ReferenceAttributeEqual",
    "ReferenceCondition",
    "ReferenceCorrelationKey",
    "ReferenceEventType",
    "ReferencePattern",
    "ReferencePatternQuery",
    "ReferencePredicate",
    "ReferenceScope",
    "idgen",
    "primitives",
]

OPERATORS: dict[str, type[ReferencePattern]] = {
    operator.keyword: operator
    for operator in (Ordered, ReferenceAtLeast, ReferenceAtMost, ReferenceUnless, ReferenceNot, ReferenceCancelWhen)
}
"""By keyword."""
