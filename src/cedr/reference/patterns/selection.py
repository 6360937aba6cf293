"""Selection and consumption: which of the possible matches are emitted, and which events they consume.

Defined on the final history, so that arrival does not matter: take the completing events in the order of start and id.
The candidates are the matches that the event completes and whose contributors are not consumed yet. For each parameter
from left to right, FIRST keeps only the matches with the smallest (start, id) there, LAST those with the largest; a
match in which the parameter does not take part stays. Emit the rest. Then every event emitted at a CONSUME parameter is
consumed for this operator.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from cedr.reference.patterns.instance import Instance
from cedr.reference.patterns.pattern import ReferencePattern


def select_and_consume(matches: list[Instance], parameters: Sequence[ReferencePattern]) -> list[Instance]:
    consumed: set[Any] = set()
    emitted: list[Instance] = []
    by_completion = sorted(matches, key=lambda m: m.cbt[-1].order)
    for _, completed in groupby(by_completion, key=lambda m: m.cbt[-1].order):
        candidates = [m for m in completed if not any(c.id in consumed for c in m.cbt)]
        for role, parameter in enumerate(parameters):
            if parameter.selection != "EACH":
                candidates = keep_extreme(candidates, role, parameter.selection == "LAST")
        emitted += candidates
        consumed |= {c.id for m in candidates for c, p in took_part(m, parameters) if p.consumption == "CONSUME"}
    return emitted


def keep_extreme(candidates: list[Instance], role: int, largest: bool) -> list[Instance]:
    def at_role(match: Instance) -> Any:
        return match.cbt[match.roles.index(role)].order

    present = [at_role(m) for m in candidates if role in m.roles]
    if not present:
        return candidates
    extreme = max(present) if largest else min(present)
    return [m for m in candidates if role not in m.roles or at_role(m) == extreme]


def took_part(match: Instance, parameters: Sequence[ReferencePattern]) -> list[tuple[Instance, ReferencePattern]]:
    return [(c, parameters[role]) for c, role in zip(match.cbt, match.roles, strict=True)]
