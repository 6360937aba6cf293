"""Reasons as text: a line that says what is wrong, and below it the events this is about."""

from collections.abc import Iterable
from functools import singledispatch

from cedr.columnar.chunk import VS
from cedr.lineage import reasons
from cedr.lineage.reasons import Reason
from cedr.lineage.shown import Shown, pairs, text
from cedr.reference.patterns.instance import Instance
from cedr.reference.patterns.sequence import Atleast


@singledispatch
def told(reason: Reason, shown: Shown) -> list[str]:
    """The lines that tell a reason."""
    raise NotImplementedError(f"no words for {type(reason).__name__}")


def listed(instances: Iterable[Instance], shown: Shown) -> list[str]:
    """The events of instances, one below the other."""
    return [f"  {line}" for instance in instances for line in shown.events(instance)]


@told.register
def _(reason: reasons.NoSuchEvent, shown: Shown) -> list[str]:
    wanted = pairs((name, text(value)) for name, value in reason.wanted.items())
    lines = [f"there is no {shown.pattern(reason.leaf)}{' with ' + wanted if wanted else ''}"]
    lines += [f"  one came late and was put aside: {message}" for message in reason.put_aside]
    if reason.removed:
        lines.append(f"  {reason.removed} came, but a correction removed {'it' if reason.removed == 1 else 'them'}")
    if reason.of_other_type is not None:
        row = reason.of_other_type.row(0, named=True)
        when = shown.time(row.pop(VS))
        lines.append(f"  of another type there is one at {when} ({pairs((n, text(v)) for n, v in row.items())})")
    return lines + nearest(reason.nearest, shown)


@told.register
def _(reason: reasons.NothingNear, shown: Shown) -> list[str]:
    key = " and ".join(shown.nearby.node.key.attributes[int(reason.leaf.kind)])
    which = f" with the same {key}" if key else ""
    line = f"there is no {shown.pattern(reason.leaf)}{which} near enough to matter"
    return [line, *nearest(reason.nearest, shown)]


def nearest(instance: Instance | None, shown: Shown) -> list[str]:
    return [] if instance is None else [f"  the nearest is {line}" for line in shown.events(instance)]


@told.register
def _(reason: reasons.WrongOrder, shown: Shown) -> list[str]:
    together = reason.earlier.vs == reason.later.vs
    when = "start at the same time" if together else "come the other way round"
    needs = "different times" if isinstance(reason.pattern, Atleast) else "this order"
    line = f"wrong order: {shown.pattern(reason.pattern)} needs {needs}, but they {when}"
    return [line, *listed((reason.earlier, reason.later), shown)]


@told.register
def _(reason: reasons.TooFar, shown: Shown) -> list[str]:
    apart = reason.chain[-1].vs - reason.chain[0].vs
    more = f"they are {shown.length(apart)} apart, {shown.length(reason.by)} too much"
    return [f"too far apart for {shown.pattern(reason.pattern)}: {more}", *listed(reason.chain, shown)]


@told.register
def _(reason: reasons.Falsified, shown: Shown) -> list[str]:
    false = [f"{shown.condition(c)} is not true: {shown.values(c, reason.instance)}" for c in reason.conditions]
    return [*false, *listed([reason.instance], shown)]


@told.register
def _(reason: reasons.Negated, shown: Shown) -> list[str]:
    times = f"after {shown.time(reason.after)} and before {shown.time(reason.before)}"
    return [
        f"{shown.pattern(reason.pattern)} allows no {shown.forbidden(reason.pattern)} {times}; there is",
        *listed([reason.threat], shown),
        "which forbids",
        *listed([reason.instance], shown),
    ]


@told.register
def _(reason: reasons.TooMany, shown: Shown) -> list[str]:
    time = f"from {shown.time(reason.start)} to {shown.time(reason.end)}"
    line = f"{shown.pattern(reason.pattern)}: {time} there are never fewer than {len(reason.events)}"
    return [line, *listed(reason.events, shown)]


@told.register
def _(reason: reasons.TooFewParameters, shown: Shown) -> list[str]:
    n = reason.pattern.contributors
    if len(reason.named) > n:
        names = " and ".join(reason.named)
        return [f"{shown.pattern(reason.pattern)} takes {n} of its parameters at a time, but {names} are named"]
    return [f"{shown.pattern(reason.pattern)} needs {n} of its parameters, but only {reason.present} have events near"]


@told.register
def _(reason: reasons.NotSelected, shown: Shown) -> list[str]:
    decision = reason.fate.decision
    which = f"{shown.pattern(decision.parameter)} is {decision.parameter.selection}"
    return [
        f"not selected: in {shown.pattern(reason.pattern)} {which}, and of",
        *listed(decision.choices, shown),
        "this one is preferred",
        *listed([decision.chosen], shown),
    ]


@told.register
def _(reason: reasons.Consumed, shown: Shown) -> list[str]:
    return [
        "consumed: this event",
        *listed([reason.fate.contributor], shown),
        "was used up by the earlier match of",
        *listed([reason.fate.by], shown),
    ]


@told.register
def _(reason: reasons.LeftOut, shown: Shown) -> list[str]:
    when = f"from {shown.time(reason.start)} to {shown.time(reason.end)}"
    return [f"the pattern matches {when}, but what follows it in the query, a slice or a filter, leaves the match out"]
