"""Selection and consumption in one pass over matches in the order of their completing instances."""

import numpy as np
from numba import njit

FIRST, LAST = 1, 2


def order_of_ties(g, vs, ids):
    """The order by (group, start, id) of a list that is sorted by group and start; None if it is in that order."""
    return np.lexsort((ids, vs, g)) if out_of_order(g, vs, ids) else None


@njit(cache=True)
def out_of_order(g, vs, ids):
    for i in range(1, len(g)):  # noqa: SIM110 numba needs a loop
        if g[i] == g[i - 1] and vs[i] == vs[i - 1] and ids[i] < ids[i - 1]:
            return True
    return False


@njit(cache=True)
def selected_pairs(low, high, completes, mode, consumes, numbers, completing, consumed):
    """The selected pairs `(i, x)` of a completing instance i and an earlier one x in [low[i], high[i]).

    Earlier instances are in the order of start and id, and so are completing ones, of which only some `completes`.
    `consumes` is whether each of the two is consumed; `numbers` and `completing` are the numbers of the instances, by
    which `consumed` is known and changed. Those consumed are skipped for good, so that they are looked at once.
    """
    following = np.arange(len(numbers) + 1)
    preceding = np.arange(len(numbers) + 1)  # of the place before
    which = np.empty(len(low), dtype=np.int64)
    found = np.empty(len(low), dtype=np.int64)
    size = 0
    for i in range(len(low)):
        if not completes[i] or consumed[completing[i]]:
            continue
        begin = size
        x = low[i] if mode != LAST else high[i] - 1
        while low[i] <= x < high[i]:
            x = root_of(preceding, x + 1) - 1 if mode == LAST else root_of(following, x)
            if x < low[i] or x >= high[i]:
                break
            if consumed[numbers[x]]:
                following[x], preceding[x + 1] = x + 1, x
                continue
            if size == len(which):
                which, found = doubled(which), doubled(found)
            which[size], found[size] = i, x
            size += 1
            if mode != 0:
                break
            x += 1
        if size > begin and consumes[1]:
            consumed[completing[i]] = True
        if consumes[0]:
            for k in range(begin, size):
                consumed[numbers[found[k]]] = True
    return which[:size].copy(), found[:size].copy()


@njit(cache=True)
def root_of(links, x):
    """Where a chain of links ends; it is shortened on the way."""
    while links[x] != x:
        links[x] = links[links[x]]
        x = links[x]
    return x


@njit(cache=True)
def doubled(values):
    larger = np.empty(2 * len(values), dtype=np.int64)
    larger[: len(values)] = values
    return larger


@njit(cache=True)
def select_and_consume(g, vs, completing, starts, ids, numbers, modes, consumes, gone, size):
    """Which matches are selected, and for each instance number the match and the parameter that consumed it, or -1.

    `numbers` has a row per match and a column per parameter: equal instances have equal numbers, -1 where there is
    none. Those in `gone` are consumed already.
    """
    n, roles = numbers.shape
    selected = np.zeros(n, dtype=np.bool_)
    consumed = np.zeros(size, dtype=np.bool_)
    consumed[gone] = True
    by_row = np.full(size, -1, dtype=np.int64)
    by_role = np.full(size, -1, dtype=np.int64)
    begin = 0
    while begin < n:
        end = begin
        while end < n and g[end] == g[begin] and vs[end] == vs[begin] and completing[end] == completing[begin]:
            selected[end] = True
            for r in range(roles):
                if numbers[end, r] >= 0 and consumed[numbers[end, r]]:
                    selected[end] = False
            end += 1
        for r in range(roles):
            if modes[r] != 0:
                keep_extreme(selected, begin, end, starts, ids, numbers, r, modes[r] == LAST)
        for i in range(begin, end):
            if not selected[i]:
                continue
            for r in range(roles):
                number = numbers[i, r]
                if consumes[r] and number >= 0 and not consumed[number]:
                    consumed[number] = True
                    by_row[number], by_role[number] = i, r
        begin = end
    return selected, by_row, by_role


@njit(cache=True)
def keep_extreme(selected, begin, end, starts, ids, numbers, role, largest):
    """Of the selected matches in [begin, end) only those whose instance at the parameter is the first, or the last."""
    best = -1
    for i in range(begin, end):
        if not selected[i] or numbers[i, role] < 0:
            continue
        if best < 0:
            best = i
            continue
        if starts[i, role] != starts[best, role]:
            before = starts[i, role] < starts[best, role]
        else:
            before = ids[i, role] < ids[best, role]
        if before != largest and numbers[i, role] != numbers[best, role]:
            best = i
    if best < 0:
        return
    for i in range(begin, end):
        if numbers[i, role] >= 0 and numbers[i, role] != numbers[best, role]:
            selected[i] = False
