"""Level: the consistency a query asks for, until the optimizer places Finalize and Align."""

from dataclasses import dataclass

from cedr.operators.base import Latency
from cedr.plan.node import Unary
from cedr.plan.nodes.align import Flavour
from cedr.temporal.consistency import Consistency


@dataclass(frozen=True, eq=False)
class Level(Unary):
    """What was asked of everything below; None leaves it open. The outermost word counts."""

    consistency: Consistency | None = None
    latency: Latency | None = None
    flavour: Flavour | None = None
    moved: bool = False
    """Whether the level came while the query was running, and is not what it says itself."""
