"""Which promises an operator requires to emit, and to forget.

Two kinds of promises can help. *Progress* states how far time has come: for everything, a CTI, or for the values of
some columns. It releases results that have an end, and lets rows that have an end be forgotten. A promise *without
end*, that no more rows with a value will come, does the same for what has no end.

Without an Align that waits, operators do not require promises to emit: later events are taken as a sign that earlier
ones have arrived, and results that turn out wrong are retracted. Rows that an Align has released are not such a sign.
"""

from collections.abc import Sequence
from typing import NamedTuple

from cedr.plan.aspects.properties import Properties

AT_ONCE = "at once"
LATER_EVENTS = "later events"
ENDING = "lifetimes that end, as windows give them"


class RequiredPromise(NamedTuple):
    """A promise by all of these inputs, about columns by which their rows are combined, or fewer."""

    ports: tuple[int, ...]
    without_end: bool = False
    span: str = ""
    """What makes progress enough."""
    instead: str = ""
    """What would make progress enough, or the promise needless."""
    done: str = "when a value is done"
    """What a promise without end must state."""


Requirement = RequiredPromise | str
"""A text names what is there already."""


class ProgressRequirements(NamedTuple):
    to_emit: Requirement
    to_forget: tuple[Requirement, ...]
    results: str = ""
    """Which results `to_emit` is about, if the others are emitted at once."""


class NodeContext(NamedTuple):
    """What is known about the rows around a node."""

    inputs: Sequence[Properties]
    output: Properties
    settled: bool
    """Whether all rows come from an Align that waits."""


def to_emit(latency: str | None, ports: tuple[int, ...], context: NodeContext) -> Requirement:
    """For results that end."""
    if latency == "eager":
        return AT_ONCE
    return RequiredPromise(ports) if context.settled else LATER_EVENTS


def to_emit_ends(latency: str | None, ports: tuple[int, ...], context: NodeContext) -> Requirement:
    """For results whose ends may be infinite, which `perfect` waits for."""
    if latency in ("ordered", "eager") or context.output.finite:
        return to_emit(latency, ports, context)
    return RequiredPromise(ports, True, "", f'{ENDING}; to emit, with_latency("ordered") is enough')
