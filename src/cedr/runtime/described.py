"""What a snapshot contains about its operators: their identities, their state, their progress.

A tool can list a snapshot without the query, and a later version can find the state of an operator by its identity.
"""

from hashlib import blake2b
from typing import Any

from cedr.plan.fragment import Fragment, Input
from cedr.runtime.engine import Engine


def described(place: str, engine: Engine, names: list[str] | None = None) -> list[dict[str, Any]]:
    """The operators of an engine; `place` names the engine among those of the query.

    identity   `names`, where the plan has them (`cedr.plan.identity`); else a hash of the operator and everything that
               leads to it
    step       its position in the engine
    text       the node of the plan
    fields     names and kinds of its state
    """
    names = names or identities(engine.fragment)
    return [
        {
            "identity": names[number],
            "place": place,
            "step": number,
            "operator": step.name,
            "text": step.node.describe(),
            "inputs": [str(origin) for origin in step.inputs],
            "fields": {name: kind.name for _, name, kind in operator._saved},
            "rows": operator.state_size()[0],
            "bytes": operator.state_size()[1],
            "cti_in": operator.cti,
            "cti": operator.cti_out,
        }
        for number, (step, operator) in enumerate(zip(engine.fragment.steps, engine.operators, strict=True))
    ]


def identities(fragment: Fragment) -> list[str]:
    """Of each step: a hash of its text and the identities of its inputs. The second of two equal ones ends in -2."""
    found: list[str] = []
    for step in fragment.steps:
        inputs = [identity_of(origin, found) for origin in step.inputs]
        text = "\n".join([step.node.describe(), *inputs])
        name = blake2b(text.encode(), digest_size=6).hexdigest()
        same = sum(other.partition("-")[0] == name for other in found)
        found.append(f"{name}-{same + 1}" if same else name)
    return found


def identity_of(origin: Input, found: list[str]) -> str:
    return found[origin] if isinstance(origin, int) else f"source {origin}"
