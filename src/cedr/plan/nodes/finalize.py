"""Finalize: checks promises, repairs chains of adjusts and forgets old rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cedr.plan.aspects import text
from cedr.plan.aspects.loops import WAITS
from cedr.plan.aspects.progress import (
    AT_ONCE,
    NodeContext,
    ProgressRequirements,
)
from cedr.plan.aspects.promises import CTI, Schemes
from cedr.plan.aspects.properties import Properties
from cedr.plan.node import Independent, Node, Work, lifetimes
from cedr.temporal.duration import show_duration
from cedr.temporal.time import INF


@dataclass(frozen=True, eq=False)
class Finalize(Independent):
    """Checks promises, repairs broken chains of adjusts, forgets what is older than `remember`."""

    work = Work.ANY_SHARD
    keeps_lifetimes = True

    remember: int = INF
    late: Literal["collect", "raise"] = "collect"

    def describe(self) -> str:
        return f"Finalize, remember {show_duration(self.remember)}"

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        forgets = "" if self.remember == INF else f", at most {show_duration(self.remember)} back"
        if inputs[0].insert_only:
            return f"no rows, as there are no adjusts{forgets}"
        return text.bounded(f"live rows that may be adjusted{forgets}", inputs)

    def derive_properties(self, *inputs: Properties) -> Properties:
        (p,) = inputs
        return replace(p, remember=self.remember if p.remember is None else min(p.remember, self.remember))

    @property
    def lifetimes_from(self) -> Node:
        return self.input

    def progress_requirements(self, context: NodeContext) -> ProgressRequirements | None:
        (known,) = context.inputs
        if known.insert_only:
            return None
        if self.remember != INF and known.finite:
            held = f"remembering {show_duration(self.remember)} and {lifetimes(self.input)}"
            return ProgressRequirements(AT_ONCE, (held,))
        return ProgressRequirements(AT_ONCE, (self.until_settled(context),))

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        """What is forgotten is settled by a CTI of its own."""
        return inputs[0] if self.remember == INF else {CTI: False, **inputs[0]}

    def loop_refusal(self, of_loop: list[bool]) -> str:
        return WAITS
