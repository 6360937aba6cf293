"""The members of groups: a list for each group, from the one that came last to the first."""

import numpy as np
from numba import njit


class Members:
    def __init__(self) -> None:
        self.last = np.empty(0, dtype=np.int64)
        """By group the member that came last, -1 for none."""
        self.before = np.empty(0, dtype=np.int64)
        """By member the one that came before it in its group."""

    def add(self, members, groups):
        """Add members, which have new numbers, to groups."""
        if len(members):
            self.last = with_room(self.last, int(groups.max()) + 1)
            self.before = with_room(self.before, int(members.max()) + 1)
            link(self.last, self.before, members, groups)

    def of(self, groups):
        """All members of some groups."""
        return found(self.last, self.before, groups)


def with_room(numbers, size):
    """An array with room for `size` numbers, at least twice as large each time it grows; new ones are -1."""
    if len(numbers) >= size:
        return numbers
    return np.concatenate((numbers, np.full(max(size, 2 * len(numbers), 64) - len(numbers), -1, dtype=np.int64)))


@njit(cache=True)
def link(last, before, members, groups):
    for i in range(len(members)):
        before[members[i]] = last[groups[i]]
        last[groups[i]] = members[i]


@njit(cache=True)
def found(last, before, groups):
    n = 0
    for g in groups:
        member = last[g]
        while member >= 0:
            n += 1
            member = before[member]
    result = np.empty(n, dtype=np.int64)
    n = 0
    for g in groups:
        member = last[g]
        while member >= 0:
            result[n] = member
            n += 1
            member = before[member]
    return result
