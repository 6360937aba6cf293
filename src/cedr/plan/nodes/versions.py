"""Versions: a project whose rows are versions of events."""

from dataclasses import dataclass

from cedr.plan.nodes.project import Project


@dataclass(frozen=True, eq=False)
class Versions(Project):
    """A project whose columns `id`, `vs` and `ve` are the header of a version."""
