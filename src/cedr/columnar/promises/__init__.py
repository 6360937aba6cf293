"""Promises: a set of punctuations as columns, so that a million of them stay cheap.

What a set says is a function: for each payload the time before which nothing about it will come any more. `of` looks
it up for many rows at once, `plus` is the later of two such times everywhere (both promises hold), `combined` the
earlier one (only what two inputs both promise). Three tables hold it:

points   per set of attributes, constants and a time: a hash lookup
steps    one attribute of whole numbers or times: disjoint ranges in order, neighbours with the same time merged; so
         promises about the keys 1, 2, 3, ... become one range
others   what fits neither (ranges of texts, doubles or of several attributes), one by one; keep those few

A set never changes. `PromiseIndex` collects what arrives, merging small sets into large ones now and then.
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
