"""Loops: what `iterate` means, and the graph queries made of it, each as its definition."""

from cedr.reference.fixed_point.fixed_point import fixed_point
from cedr.reference.fixed_point.graphs import components, distances, reachable

__all__ = ["components", "distances", "fixed_point", "reachable"]
