"""Intersect: at each instant the payloads both sides have, each once, in maximal lifetimes."""

from cedr.reference.distinct import distinct
from cedr.reference.join import semi_join
from cedr.temporal import History


def intersect(left: History, right: History) -> History:
    return semi_join(distinct(left), distinct(right), lambda p1, p2: p1 == p2)
