"""Nodes that do not change the answer, only when it is given: consistency levels, Finalize, Align."""

from dataclasses import dataclass
from typing import Any, Literal

from cedr.operators.base import Latency
from cedr.plan.node import Unary
from cedr.temporal.consistency import Consistency
from cedr.temporal.time import INF

Flavour = Literal["ordered", "perfect"]


@dataclass(frozen=True, eq=False)
class Level(Unary):
    """What was asked of everything below; None leaves it open. The outermost word counts."""

    consistency: Consistency | None = None
    latency: Latency | None = None
    flavour: Flavour | None = None
    moved: bool = False
    """Whether the level came while the query was running, and is not what it says itself."""


@dataclass(frozen=True, eq=False)
class Finalize(Unary):
    """Checks promises, mends broken chains of adjusts, forgets what is older than `remember`."""

    remember: int = INF
    late: Literal["collect", "raise"] = "collect"


@dataclass(frozen=True, eq=False)
class Guard(Unary):
    """What remains of Finalize where nothing above keeps state: rows that come below a CTI are put aside."""

    late: Literal["collect", "raise"] = "collect"


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
