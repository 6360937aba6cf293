"""Level: the consistency a query asks for, until the optimizer places Finalize and Align."""

from dataclasses import dataclass

from cedr.plan.aspects.loops import WAITS
from cedr.plan.aspects.properties import Properties
from cedr.plan.latency import Latency
from cedr.plan.node import RowByRow, Work
from cedr.plan.nodes.align import Flavour
from cedr.temporal.consistency import Consistency


@dataclass(frozen=True, eq=False)
class Level(RowByRow):
    """The level of everything below; None leaves it open. The outermost level counts."""

    work = Work.OTHER

    consistency: Consistency | None = None
    latency: Latency | None = None
    flavour: Flavour | None = None
    moved: bool = False
    """Whether the level was set while the query was running, and is not part of the query."""

    def describe(self) -> str:
        settings = [str(self.consistency or ""), f"latency {self.latency}" if self.latency else "", self.flavour or ""]
        return f"Level {', '.join(s for s in settings if s)}".rstrip()

    def derive_properties(self, *inputs: Properties) -> Properties:
        return inputs[0]

    def loop_refusal(self, of_loop: list[bool]) -> str:
        return WAITS
