"""Project: every payload replaced by a function of it, times untouched.

project(S, f) = { (vs, ve, f(p)) | (vs, ve, p) in S }
"""

from collections.abc import Callable
from typing import Any

from cedr.temporal import History


def project(history: History, f: Callable[[Any], Any]) -> History:
    return History((vs, ve, f(p)) for vs, ve, p in history)
