"""What an operator must be promised to speak, and to forget, one rule per node that keeps rows.

Two kinds of promises can help. *Progress* says how far time has come: for everything, a CTI, or for the values of some
columns. It lets results with an end out, and rows with an end go. A promise *for ever*, that nothing more comes about a
value at all, does the same for what has no end.

Without an Align that waits, operators do not need promises to speak: later events are taken as a sign that earlier ones
have come, and what turns out wrong is taken back. Rows that an Align has let out are no such sign.
"""

from collections.abc import Sequence
from functools import singledispatch
from typing import NamedTuple

from cedr.operators.aggregate import SUMS
from cedr.operators.patterns.parts import FAR, parts_of
from cedr.plan.node import Node
from cedr.plan.nodes import (
    Aggregate,
    Align,
    Automaton,
    Clip,
    Coalesce,
    Difference,
    Distinct,
    Finalize,
    Fused,
    Guard,
    Hopping,
    Intersect,
    Iterate,
    Join,
    Match,
    Merge,
    MergeBy,
    Moving,
    Places,
    Project,
    Reach,
    Select,
    Session,
    Sliding,
    Sort,
    TopK,
)
from cedr.plan.nodes.merge import IN_ORDER, choose
from cedr.plan.patterns import ends_with_event
from cedr.plan.properties import Properties
from cedr.temporal.duration import show_duration
from cedr.temporal.time import INF

AT_ONCE = "at once"
LATER_EVENTS = "later events"
ENDING = "lifetimes that end, as windows give them"


class Need(NamedTuple):
    """A promise by all of these inputs, about columns by which rows meet there, or fewer."""

    ports: tuple[int, ...]
    for_ever: bool = False
    span: str = ""
    """What makes progress enough."""
    instead: str = ""
    """What would make progress enough, or the promise needless."""
    done: str = "when a value is done"
    """What a promise for ever must say."""


class ProgressRequirements(NamedTuple):
    """Texts name what is there already."""

    telling: Need | str
    keeping: tuple[Need | str, ...]
    whose: str = ""
    """Whose telling there is talk of, when the rest is told at once."""


class Seen(NamedTuple):
    """What is known about the rows around a node."""

    inputs: Sequence[Properties]
    output: Properties
    settled: bool
    """Whether all rows come from an Align that waits."""


@singledispatch
def needs(node: Node, seen: Seen) -> ProgressRequirements | None:
    """None for a node that keeps nothing."""
    return None


@needs.register
def _(node: Align, seen: Seen) -> ProgressRequirements:
    if node.block != INF:
        held = f"a block of {show_duration(node.block)}"
        return ProgressRequirements(held, (held,))
    endless = node.flavour == "perfect" and not seen.inputs[0].finite
    need = Need((0,), endless, "", f'{ENDING}, or flavour="ordered"' if endless else "")
    return ProgressRequirements(need, (need,))


@needs.register
def _(node: Finalize, seen: Seen) -> ProgressRequirements | None:
    (known,) = seen.inputs
    if known.insert_only:
        return None
    if node.remember != INF and known.finite:
        return ProgressRequirements(
            AT_ONCE, (f"remembering {show_duration(node.remember)} and {lifetimes(node.input)}",)
        )
    return ProgressRequirements(AT_ONCE, (kept(node, (0,), known.finite),))


@needs.register(Aggregate)
@needs.register(TopK)
def _(node: Aggregate | TopK, seen: Seen) -> ProgressRequirements:
    """Snapshots end when anything of their group begins or ends; sums of all that ever came are one row."""
    one_row = isinstance(node, Aggregate) and not node.by and all(isinstance(a, SUMS) for _, a in node.aggregates)
    keeping = Need((0,), span="one group") if one_row else kept(node, (0,), seen.inputs[0].finite)
    return ProgressRequirements(waiting(node.latency, (0,), seen.settled), (keeping,))


@needs.register(Distinct)
@needs.register(Coalesce)
@needs.register(Difference)
@needs.register(Intersect)
def _(node: Distinct | Coalesce | Difference | Intersect, seen: Seen) -> ProgressRequirements:
    ports = tuple(range(len(node.inputs)))
    finite = all(known.finite for known in seen.inputs)
    return ProgressRequirements(waiting_for_ends(node.latency, ports, seen), (kept(node, ports, finite),))


@needs.register
def _(node: Merge, seen: Seen) -> ProgressRequirements | None:
    """An event is kept until it is settled; inserts in order leave nothing to settle."""
    if choose(seen.inputs, node.policy, node.algorithm).algorithm in IN_ORDER:
        return None
    ports = tuple(range(len(node.members)))
    telling = Need(ports) if node.policy.tells == "half-frozen" else AT_ONCE
    return ProgressRequirements(telling, (kept(node, ports, all(known.finite for known in seen.inputs)),))


@needs.register
def _(node: MergeBy, seen: Seen) -> ProgressRequirements:
    """It follows the progress of any copy, by CTIs or promises about it."""
    telling = Need((0,)) if node.policy.tells == "half-frozen" else AT_ONCE
    return ProgressRequirements(telling, (Need((0,)),))


@needs.register
def _(node: Iterate, seen: Seen) -> ProgressRequirements:
    ports = tuple(range(len(node.members)))
    return ProgressRequirements(AT_ONCE, (kept(node, ports, all(known.finite for known in seen.inputs)),))


@needs.register
def _(node: Places, seen: Seen) -> ProgressRequirements:
    return ProgressRequirements(AT_ONCE, (kept(node, (0,), seen.inputs[0].finite),))


@needs.register
def _(node: Reach, seen: Seen) -> ProgressRequirements:
    return ProgressRequirements(Need((0, 1)), (kept(node, (0, 1), all(known.finite for known in seen.inputs)),))


@needs.register
def _(node: Join, seen: Seen) -> ProgressRequirements:
    """A row waits for partners until the other side has come to its end; without a partner it waits for its own side,
    too."""
    left, right = seen.inputs
    if node.how == "inner":
        of_left = Need((1,), not left.finite, lifetimes(node.left), ENDING)
        of_right = Need((0,), not right.finite, lifetimes(node.right), ENDING)
        return ProgressRequirements(AT_ONCE, (of_left, of_right))
    telling, keeping = waiting_for_ends(node.latency, (0, 1), seen), kept(node, (0, 1), left.finite and right.finite)
    return ProgressRequirements(telling, (keeping,), "rows without a partner" if node.how in ("left", "full") else "")


@needs.register
def _(node: Clip, seen: Seen) -> ProgressRequirements:
    return ProgressRequirements(AT_ONCE, (Need((0, 1), not seen.inputs[0].finite, lifetimes(node.left), ENDING),))


@needs.register
def _(node: Session, seen: Seen) -> ProgressRequirements:
    endless = node.timeout == INF
    timeout = f"a timeout of {show_duration(node.timeout)}"
    return ProgressRequirements(AT_ONCE, (Need((0,), endless, timeout, "a timeout that ends" if endless else ""),))


@needs.register
def _(node: Automaton, seen: Seen) -> ProgressRequirements:
    ports = tuple(range(len(node.inputs)))
    if node.shape.window is None:
        return ProgressRequirements(AT_ONCE, (Need(ports, not seen.inputs[0].finite, lifetimes(node.events), ENDING),))
    endless = node.shape.window == INF
    window = f"a window of {show_duration(node.shape.window)}"
    return ProgressRequirements(AT_ONCE, (Need(ports, endless, window, "a window that ends" if endless else ""),))


@needs.register
def _(node: Match, seen: Seen) -> ProgressRequirements | None:
    if ends_with_event(node.pattern) and not node.bitemporal:
        return None
    ports = tuple(range(len(node.members)))
    if node.bitemporal:
        finite = all(known.finite for known in seen.inputs)
        return ProgressRequirements(waiting_for_ends(node.latency, ports, seen), (kept(node, ports, finite),))
    root = parts_of(node.pattern, ())
    longest = max((getattr(p, "w", 0) for p in node.pattern.walk()), default=0)
    keeping = Need(ports, root.back + root.ahead >= FAR, f"scopes of {show_duration(longest)}", "scopes that end")
    if root.settled < FAR or node.latency == "eager":
        return ProgressRequirements(waiting(node.latency, ports, seen.settled), (keeping,))
    return ProgressRequirements(
        Need(ports, True, "", 'scopes that end; to speak, with_latency("eager") is enough'), (keeping,)
    )


@needs.register
def _(node: Sort, seen: Seen) -> ProgressRequirements:
    need = Need((0,), True, done="when a value and all before it are done")
    return ProgressRequirements(need, (need,))


# --- what several rules say ----------------------------------------------------------------------------------------


def waiting(latency: str | None, ports: tuple[int, ...], settled: bool) -> Need | str:
    """For results that end."""
    if latency == "eager":
        return AT_ONCE
    return Need(ports) if settled else LATER_EVENTS


def waiting_for_ends(latency: str | None, ports: tuple[int, ...], seen: Seen) -> Need | str:
    """For results whose ends may be infinite, which `perfect` waits for."""
    if latency in ("ordered", "eager") or seen.output.finite:
        return waiting(latency, ports, seen.settled)
    return Need(ports, True, "", f'{ENDING}; to speak, with_latency("ordered") is enough')


def kept(node: Node, ports: tuple[int, ...], finite: bool) -> Need:
    """Rows stay until nothing can change about them any more."""
    return Need(ports, not finite, " and ".join(dict.fromkeys(map(lifetimes, node.inputs))), ENDING)


def lifetimes(node: Node) -> str:
    """How long rows live, if a window right below says so."""
    while isinstance(node, Select | Project | Guard | Finalize | Align | Fused | Aggregate | TopK):
        for step in reversed(node.steps) if isinstance(node, Fused) else ():
            if isinstance(step, Sliding | Moving | Hopping):
                return window(step)
        node = node.input
    return window(node) if isinstance(node, Sliding | Moving | Hopping) else "lifetimes that end"


def window(node: Sliding | Moving | Hopping) -> str:
    return f"windows of {show_duration(node.size if isinstance(node, Hopping) else node.length)}"
