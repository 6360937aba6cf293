"""Punctuated streams as the paper has them: stream iterators over sliced lists (Tucker, Maier, Sheard, Fegaras).

Here there is no time: an element is a row or a punctuation, and a punctuation excludes rows for good. The engine's
operators know lifetimes beside; for events that last for ever and punctuations that reach to infinity both must say
the same, and the laws are the same: *faithful* (safe and complete, whatever may still come) and *proper* (what they
promise holds).

iterator   what a stream iterator is, and how it runs
unary      select, project, distinct, group-by, sort
binary     union, intersect, difference, join
tables     the table operators they are the counterparts of
"""

from cedr.reference.punctuated import tables
from cedr.reference.punctuated.binary import difference, intersect, join, union
from cedr.reference.punctuated.iterator import Binary, Unary, binary, grammatical, unary
from cedr.reference.punctuated.unary import distinct, group_by, project, select, sort

__all__ = [
    "Binary",
    "Unary",
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
