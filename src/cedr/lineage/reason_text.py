"""Reasons as text: a line with the reason, and below it the events concerned."""

from collections.abc import Iterable
from functools import singledispatch

from cedr.columnar.chunk import VS
from cedr.lineage import reasons
from cedr.lineage.reasons import Reason
from cedr.lineage.rendering import Renderer, pairs, text
from cedr.reference.patterns.instance import Instance
from cedr.reference.patterns.sequence import ReferenceAtLeast


@singledispatch
def reason_lines(reason: Reason, render: Renderer) -> list[str]:
    """The lines that describe a reason."""
    raise NotImplementedError(f"no text for {type(reason).__name__}")


def listed(instances: Iterable[Instance], render: Renderer) -> list[str]:
    """The events of instances, one below the other."""
    return [f"  {line}" for instance in instances for line in render.events(instance)]


@reason_lines.register
def _(reason: reasons.NoSuchEvent, render: Renderer) -> list[str]:
    described = pairs((name, text(value)) for name, value in reason.described.items())
    lines = [f"there is no {render.pattern(reason.leaf)}{' with ' + described if described else ''}"]
    lines += [f"  one came late and was put aside: {message}" for message in reason.put_aside]
    if reason.removed:
        lines.append(f"  {reason.removed} came, but a correction removed {'it' if reason.removed == 1 else 'them'}")
    if reason.of_other_type is not None:
        row = reason.of_other_type.row(0, named=True)
        when = render.time(row.pop(VS))
        lines.append(f"  of another type there is one at {when} ({pairs((n, text(v)) for n, v in row.items())})")
    return lines + nearest(reason.nearest, render)


@reason_lines.register
def _(reason: reasons.NothingNear, render: Renderer) -> list[str]:
    key = " and ".join(render.nearby.node.key.attributes[int(reason.leaf.kind)])
    which = f" with the same {key}" if key else ""
    line = f"there is no {render.pattern(reason.leaf)}{which} near enough to matter"
    return [line, *nearest(reason.nearest, render)]


def nearest(instance: Instance | None, render: Renderer) -> list[str]:
    return [] if instance is None else [f"  the nearest is {line}" for line in render.events(instance)]


@reason_lines.register
def _(reason: reasons.WrongOrder, render: Renderer) -> list[str]:
    together = reason.earlier.vs == reason.later.vs
    when = "start at the same time" if together else "come the other way round"
    needs = "different times" if isinstance(reason.pattern, ReferenceAtLeast) else "this order"
    line = f"wrong order: {render.pattern(reason.pattern)} needs {needs}, but they {when}"
    return [line, *listed((reason.earlier, reason.later), render)]


@reason_lines.register
def _(reason: reasons.TooFar, render: Renderer) -> list[str]:
    apart = reason.chain[-1].vs - reason.chain[0].vs
    more = f"they are {render.length(apart)} apart, {render.length(reason.by)} too much"
    return [f"too far apart for {render.pattern(reason.pattern)}: {more}", *listed(reason.chain, render)]


@reason_lines.register
def _(reason: reasons.Falsified, render: Renderer) -> list[str]:
    false = [f"{render.condition(c)} is not true: {render.values(c, reason.instance)}" for c in reason.conditions]
    return [*false, *listed([reason.instance], render)]


@reason_lines.register
def _(reason: reasons.Negated, render: Renderer) -> list[str]:
    times = f"after {render.time(reason.after)} and before {render.time(reason.before)}"
    return [
        f"{render.pattern(reason.pattern)} allows no {render.forbidden(reason.pattern)} {times}; there is",
        *listed([reason.threat], render),
        "which forbids",
        *listed([reason.instance], render),
    ]


@reason_lines.register
def _(reason: reasons.TooMany, render: Renderer) -> list[str]:
    time = f"from {render.time(reason.start)} to {render.time(reason.end)}"
    line = f"{render.pattern(reason.pattern)}: {time} there are never fewer than {len(reason.events)}"
    return [line, *listed(reason.events, render)]


@reason_lines.register
def _(reason: reasons.TooFewParameters, render: Renderer) -> list[str]:
    n = reason.pattern.contributors
    if len(reason.named) > n:
        names = " and ".join(reason.named)
        return [f"{render.pattern(reason.pattern)} takes {n} of its parameters at a time, but {names} are named"]
    return [f"{render.pattern(reason.pattern)} needs {n} of its parameters, but only {reason.present} have events near"]


@reason_lines.register
def _(reason: reasons.NotSelected, render: Renderer) -> list[str]:
    decision = reason.fate.decision
    which = f"{render.pattern(decision.parameter)} is {decision.parameter.selection}"
    return [
        f"not selected: in {render.pattern(reason.pattern)} {which}, and of",
        *listed(decision.choices, render),
        "this one is preferred",
        *listed([decision.chosen], render),
    ]


@reason_lines.register
def _(reason: reasons.Consumed, render: Renderer) -> list[str]:
    return [
        "consumed: this event",
        *listed([reason.fate.contributor], render),
        "was used up by the earlier match of",
        *listed([reason.fate.by], render),
    ]


@reason_lines.register
def _(reason: reasons.LeftOut, render: Renderer) -> list[str]:
    when = f"from {render.time(reason.start)} to {render.time(reason.end)}"
    return [f"the pattern matches {when}, but what follows it in the query, a slice or a filter, leaves the match out"]
