"""Align: holds rows back, so that they leave in order and repaired."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from cedr.plan.aspects import text
from cedr.plan.aspects.loops import WAITS
from cedr.plan.aspects.progress import (
    ENDING,
    NodeContext,
    ProgressRequirements,
    RequiredPromise,
)
from cedr.plan.aspects.properties import Properties
from cedr.plan.node import Independent, Node, Work
from cedr.temporal.duration import show_duration
from cedr.temporal.time import INF

Flavour = Literal["ordered", "perfect"]


@dataclass(frozen=True, eq=False)
class Align(Independent):
    """Holds rows back for up to `block`, to release them in order and repaired.

    `by`: sets of columns; promises about them release the rows they settle before the CTI does, each in its own order.
    Only promises that reach the end of the query are here, or what was released would be emitted and retracted.
    """

    work = Work.ANY_SHARD
    keeps_lifetimes = True

    block: int = INF
    flavour: Flavour = "ordered"
    clock: Any = None
    by: tuple[tuple[str, ...], ...] = ()

    def describe(self) -> str:
        clock = ", by the clock" if self.clock else ""
        return f"Align {self.flavour}, block {show_duration(self.block)}{clock}{text.promises(self.by)}"

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        waits = "until a CTI" if self.block == INF else f"for at most {show_duration(self.block)}"
        return f"rows held back {waits}{' or a promise' if self.by else ''}"

    def derive_properties(self, *inputs: Properties) -> Properties:
        """Promises about some columns release rows of different values out of order. Perfect has no adjusts."""
        (p,) = inputs
        waits = self.block == INF and self.clock is None
        insert_only = p.insert_only or (waits and self.flavour == "perfect")
        return replace(p, ordered=not self.by and (p.ordered or waits), insert_only=insert_only)

    @property
    def lifetimes_from(self) -> Node:
        return self.input

    def progress_requirements(self, context: NodeContext) -> ProgressRequirements:
        if self.block != INF:
            held = f"a block of {show_duration(self.block)}"
            return ProgressRequirements(held, (held,))
        endless = self.flavour == "perfect" and not context.inputs[0].finite
        promise = RequiredPromise((0,), endless, "", f'{ENDING}, or flavour="ordered"' if endless else "")
        return ProgressRequirements(promise, (promise,))

    def loop_refusal(self, of_loop: list[bool]) -> str:
        return WAITS
