"""Where events stand among those of their key: what lets a loop find the event that follows.

Columns are added to each row:

    _run_at      its place: its start, or the number in the column `order`
    _run_after   the place before its own: by starts that of the last event of the key before it, by number one less
    _run_rank    tells it from the other events at its place

Not `linked`, rows have no neighbours: `_run_after` says nothing, but nothing is told anew when others come.
"""

from dataclasses import dataclass
from functools import cached_property

from cedr.operators.automata.places import ADDED
from cedr.plan.node import Unary
from cedr.plan.schema import Schema


@dataclass(frozen=True, eq=False)
class Places(Unary):
    by: tuple[str, ...] = ()
    order: str | None = None
    linked: bool = True

    @cached_property
    def schema(self) -> Schema:
        return {**self.input.schema, **ADDED}
