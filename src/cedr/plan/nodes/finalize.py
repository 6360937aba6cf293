"""Finalize: checks promises, repairs chains of adjusts and forgets old rows."""

from dataclasses import dataclass
from typing import Literal

from cedr.plan.node import Unary
from cedr.temporal.time import INF


@dataclass(frozen=True, eq=False)
class Finalize(Unary):
    """Checks promises, mends broken chains of adjusts, forgets what is older than `remember`."""

    remember: int = INF
    late: Literal["collect", "raise"] = "collect"
