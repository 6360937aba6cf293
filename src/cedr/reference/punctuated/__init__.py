"""Punctuated streams as the paper has them: stream iterators over sliced lists (Tucker, Maier, Sheard, Fegaras).

There is no time here: an element is a row or a punctuation, and a punctuation excludes rows forever. The operators of
the engine also have lifetimes; for endless events and punctuations that reach to infinity both must agree, and the laws
are the same: *faithful* (safe and complete, whatever may follow) and *proper* (their promises hold).

iterator   the definition of a stream iterator, and how it runs
unary      select, project, distinct, group-by, sort
binary     union, intersect, difference, join
tables     the table operators they are the counterparts of
"""

from cedr.reference.punctuated import tables
from cedr.reference.punctuated.binary import difference, intersect, join, union
from cedr.reference.punctuated.iterator import BinaryIterator, UnaryIterator, binary, grammatical, unary
from cedr.reference.punctuated.unary import distinct, group_by, project, select, sort

__all__ = [
    "BinaryIterator",
    "UnaryIterator",
    "binary",
    "difference",
    "distinct",
    "grammatical",
    "group_by",
    "intersect",
    "join",
    "project",
    "select",
    "sort",
    "tables",
    "unary",
    "union",
]
