"""Promises: a set of punctuations as columns, so that a million of them stay cheap.

A set is a function: for each payload, the time before which no more elements with it will arrive. `of` looks it up for
many rows at once, `plus` is the later of two such times everywhere (both promises hold), `combined` the earlier one
(only what two inputs both promise). It is stored in three tables:

points   per set of attributes, constants and a time: a hash lookup
steps    one attribute of whole numbers or times: disjoint ranges in order, neighbours with the same time merged; so
         promises about the keys 1, 2, 3, ... become one range
others   all other promises (ranges of texts, doubles or several attributes), one by one; these should be few

A set is immutable. `PromiseIndex` collects sets as they arrive and occasionally merges small ones into large ones.
"""

from cedr.columnar.promises.building import Schema, point_promises, promises_of
from cedr.columnar.promises.points import BEFORE, Names
from cedr.columnar.promises.promise_index import PromiseIndex
from cedr.columnar.promises.promises import NONE, Promises
from cedr.columnar.promises.steps import NO_STEPS, Steps

__all__ = [
    "BEFORE",
    "NONE",
    "NO_STEPS",
    "Names",
    "PromiseIndex",
    "Promises",
    "Schema",
    "Steps",
    "point_promises",
    "promises_of",
]
