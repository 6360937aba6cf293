"""Loops: the definition of `iterate`, and of the graph queries built on it."""

from cedr.reference.fixed_point.fixed_point import fixed_point
from cedr.reference.fixed_point.graphs import components, distances, reachable

__all__ = ["components", "distances", "fixed_point", "reachable"]
