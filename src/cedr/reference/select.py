"""Select: the events whose payload satisfies a predicate, times untouched.

select(S, f) = { (vs, ve, p) | (vs, ve, p) in S, f(p) }
"""

from collections.abc import Callable
from typing import Any

from cedr.temporal import History


def select(history: History, keep: Callable[[Any], Any]) -> History:
    return history.where(keep)
