"""Align: holds rows back, so that they leave in order and repaired."""

from dataclasses import dataclass
from typing import Any, Literal

from cedr.plan.node import Unary
from cedr.temporal.time import INF

Flavour = Literal["ordered", "perfect"]


@dataclass(frozen=True, eq=False)
class Align(Unary):
    """Holds rows back for up to `block`, to let them out in order and already mended.

    `by`: sets of columns; promises about them release the rows they settle before the CTI does, each in its own order.
    Only such promises stand here as reach the end of the query, or what was released would be told and taken back.
    """

    block: int = INF
    flavour: Flavour = "ordered"
    clock: Any = None
    by: tuple[tuple[str, ...], ...] = ()
