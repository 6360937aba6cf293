"""The proof of a match, as text: its contributors, what did not come between, what was chosen, which conditions hold.

UNLESS 5
  SEQUENCE 12
    INSTALL x from 1 to 2: Machine_Id='web1', load=0.1
    SHUTDOWN y from 3 to 4: Machine_Id='web1', load=0.2
  no RESTART z after 3 and before 8
x.load < y.load: x.load=0.1, y.load=0.2
"""

from collections.abc import Iterator

from cedr.lineage import selection
from cedr.lineage.definition import Question, TracedEventType
from cedr.lineage.rendering import Renderer
from cedr.reference.patterns.atmost import ReferenceAtMost
from cedr.reference.patterns.instance import Instance
from cedr.reference.patterns.negation import ReferenceNegation
from cedr.reference.patterns.pattern import ReferencePattern
from cedr.reference.patterns.selection import took_part
from cedr.reference.patterns.sequence import Ordered


def proof(match: Instance, render: Renderer) -> list[str]:
    pattern = render.nearby.pattern
    return [f"  {line}" for line in (*part(pattern, match, match, render), *conditions(match, render))]


def part(pattern: ReferencePattern, instance: Instance, match: Instance, render: Renderer) -> Iterator[str]:
    """The lines of one part of the pattern and all in it."""
    if isinstance(pattern, TracedEventType):
        yield render.event(instance, match)
        return
    yield render.pattern(pattern)
    match pattern:
        case Ordered():
            for contributor, role in zip(instance.cbt, instance.roles, strict=True):
                yield from indented(part(pattern.parameters[role], contributor, match, render))
            yield from indented(choice(pattern, instance, render))
        case ReferenceNegation():
            kept = pattern.kept_instance(instance)
            yield from indented(part(pattern.kept, kept, match, render))
            yield "  " + nothing_forbidden(pattern, kept, render)
        case ReferenceAtMost():
            for leaf in instance.leaves:
                yield "  " + render.event(leaf, match)
            events = "event counts" if len(instance.cbt) == 1 else "events count"
            yield f"  no other {events} from {render.time(instance.vs)} to {render.time(instance.ve)}"


def indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def choice(pattern: Ordered, instance: Instance, render: Renderer) -> Iterator[str]:
    """Why selection took this instance, and what it uses up."""
    if any(p.selection != "EACH" for p in pattern.parameters):
        fate = selection.fate(instance, selection.possible(pattern, render.scope), pattern.parameters)
        assert isinstance(fate, selection.Taken), "a match that was not taken has no proof"
        for decision in fate.decisions:
            yield decided(decision, render)
    for contributor, parameter in took_part(instance, pattern.parameters):
        if parameter.consumption == "CONSUME":
            what = f"{render.pattern(parameter)} at {render.time(contributor.vs)}"
            yield f"{what} is consumed: no later match has it"


def decided(decision: selection.Decision, render: Renderer) -> str:
    selected = decision.parameter.selection
    others = [i for i in decision.choices if i != decision.chosen]
    if not others:
        return f"{render.pattern(decision.parameter)} {selected}: there is only one"
    place = "earliest" if selected == "FIRST" else "latest"
    times = ", ".join(render.time(i.vs) for i in others)
    rest = "the other is" if len(others) == 1 else "the others are"
    return f"{render.pattern(decision.parameter)} {selected}: the {place} of {len(others) + 1}, {rest} at {times}"


def nothing_forbidden(pattern: ReferenceNegation, kept: Instance, render: Renderer) -> str:
    after, before = pattern.forbidden_times(kept)
    return f"no {render.forbidden(pattern)} after {render.time(after)} and before {render.time(before)}"


def conditions(match: Instance, render: Renderer) -> Iterator[str]:
    """The conditions on what takes part, with the values of which they are true."""
    for c in render.scope.where:
        if isinstance(c, Question) and not all(v in match.bound for v in c.variables):
            if not all(v in render.nearby.pattern.variables for v in c.variables):
                continue  # it is about what is forbidden or counted
            absent = [v for v in c.variables if v not in match.bound]
            yield f"{render.condition(c)}: not evaluated, as {' and '.join(absent)} takes no part"
        else:
            yield f"{render.condition(c)}: {render.values(c, match)}"
