"""The pattern operators of the CEDR language, on canonical histories."""

from cedr.reference.patterns.atmost import ATMOST
from cedr.reference.patterns.instance import Ids, Instance, idgen, primitives
from cedr.reference.patterns.kind import Kind
from cedr.reference.patterns.negation import CANCEL_WHEN, NOT, UNLESS
from cedr.reference.patterns.pattern import Pattern, Scope
from cedr.reference.patterns.predicates import AttributeEqual, Condition, CorrelationKey, Predicate
from cedr.reference.patterns.query import PatternQuery
from cedr.reference.patterns.sequence import ALL, ANY, ATLEAST, SEQUENCE

__all__ = [
    "ALL",
    "ANY",
    "ATLEAST",
    "ATMOST",
    "CANCEL_WHEN",
    "NOT",
    "SEQUENCE",
    "UNLESS",
    "AttributeEqual",
    "Condition",
    "CorrelationKey",
    "Ids",
    "Instance",
    "Kind",
    "Pattern",
    "PatternQuery",
    "Predicate",
    "Scope",
    "idgen",
    "primitives",
]
