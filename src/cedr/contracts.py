"""Contracts between the parts of the engine that no type can state: the order of calls, sorted arrays, valid output.

They are assertions, so `python -O` removes them. Those that look at every row cost time and run only with CEDR_DEBUG=1,
which the test suite sets.
"""

import os
from typing import Any

import numpy as np

DEBUG = __debug__ and os.environ.get("CEDR_DEBUG") == "1"
"""Whether contracts about all rows of a chunk are checked."""

Array = np.ndarray[Any, Any]


def sorted_by(*columns: Array) -> bool:
    """Whether rows are in order of the first column, of the second one where the first is equal, and so on."""
    undecided = np.ones(max(len(columns[0]) - 1, 0), dtype=np.bool_)
    for column in columns:
        before, after = column[:-1], column[1:]
        if (undecided & (before > after)).any():
            return False
        undecided &= before == after
    return True


class CallOrder:
    """The calls of a protocol, which come in turn: each one has to be the next."""

    def __init__(self, *calls: str) -> None:
        self.calls, self.last = calls, calls[-1]

    def call(self, name: str) -> bool:
        """Record a call; true, so that it can be asserted."""
        position = self.calls.index(name)
        expected = self.calls[position - 1]
        assert self.last == expected, f"{name} was called after {self.last}; the order is: {', '.join(self.calls)}"
        self.last = name
        return True
