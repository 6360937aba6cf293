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
def selected_chains(vs, low, high, completes, modes, consumes, numbers, completing, consumed):
    """The selected chains of earlier instances, one per step and each later than the one before, by completing one.

    Earlier instances are listed step after step, those of a step in the order of group, start and id, and so are
    completing ones, of which only some `completes`. `low[i, r]` and `high[i, r]` are the places at which step r of the
    completing instance i may be. `modes` and `consumes` are by step, the last of `consumes` is for completing ones;
    `numbers` and `completing` are the numbers of the instances, by which `consumed` is known and changed. Those
    consumed are skipped for good, so that they are looked at once.

    Of the chains that can be completed, the latest place of each step is found from the end, the earliest from the
    begin. A step that selects takes one of the two, which limits the steps after and before it. Only steps that do not
    select have several places, and each of them is part of a selected chain.

    Returns the completing instance of each selected chain and its places.
    """
    steps = low.shape[1]
    links = (np.arange(len(vs) + 1), np.arange(len(vs) + 1), numbers, consumed)
    first, last = np.empty(steps, dtype=np.int64), np.empty(steps, dtype=np.int64)
    none_chosen = np.zeros_like(modes)
    limits_before = np.any((modes[1:] == FIRST) & (modes[:-1] == 0))
    chain = np.empty(steps, dtype=np.int64)
    which = np.empty(len(low), dtype=np.int64)
    found = np.empty((len(low), steps), dtype=np.int64)
    size = 0
    for i in range(len(low)):
        if not completes[i] or consumed[completing[i]]:
            continue
        if steps == 1 and modes[0] == FIRST:  # as below, but faster
            first[0] = last[0] = next_free(low[i, 0], high[i, 0], links)
        else:
            last_places(vs, low, high, i, last, none_chosen, links)
            if last[0] >= 0:
                first_places(vs, low, i, first, last, modes, links)
                if limits_before:
                    last_places(vs, low, high, i, last, modes, links)
        if last[0] < 0:
            continue
        begin = size
        r, x = 0, first[0]
        while r >= 0:
            if x < 0:
                r -= 1
                x = next_free(chain[r] + 1, last[r] + 1, links) if r >= 0 else -1
                continue
            chain[r] = x
            if r + 1 < steps:
                r += 1
                x = first[r] if modes[r] else next_free(after(vs, low[i, r], last[r] + 1, vs[x]), last[r] + 1, links)
                continue
            if size == len(which):
                which, found = doubled(which), doubled_rows(found)
            which[size] = i
            found[size] = chain
            size += 1
            x = next_free(x + 1, last[r] + 1, links)
        if consumes[steps] and size > begin:
            consumed[completing[i]] = True
        for r in range(steps):
            if consumes[r]:
                for k in range(begin, size):
                    consumed[numbers[found[k, r]]] = True
    return which[:size].copy(), found[:size].copy()


@njit(cache=True)
def last_places(vs, low, high, i, last, chosen, links):
    """From the last step back, the latest place of each from which a chain can be completed; -1 for the first step if
    there is none. Steps that are `chosen` have their place already."""
    end = high[i, len(last) - 1]
    for r in range(len(last) - 1, -1, -1):
        if not chosen[r]:
            last[r] = last_free(low[i, r], end, links)
        if last[r] < 0:
            last[0] = -1
            return
        if r > 0:
            end = after(vs, low[i, r - 1], high[i, r - 1], vs[last[r]] - 1)


@njit(cache=True)
def first_places(vs, low, i, first, last, modes, links):
    """From the first step on, the earliest place of each in a chain that can be completed, and the choices of steps
    that select: both their places become the chosen one."""
    begin = low[i, 0]
    for r in range(len(first)):
        if modes[r] == LAST:
            first[r] = last[r]
        else:
            first[r] = next_free(begin, last[r] + 1, links)
        if modes[r] == FIRST:
            last[r] = first[r]
        if r + 1 < len(first):
            begin = after(vs, low[i, r + 1], last[r + 1] + 1, vs[first[r]])


@njit(cache=True)
def after(vs, low, high, time):
    """The first place in [low, high) that starts after a time; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if vs[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def next_free(x, end, links):
    """The first place in [x, end) that is not consumed, or -1."""
    following, preceding, numbers, consumed = links
    while x < end:
        x = root_of(following, x)
        if x < end:
            if not consumed[numbers[x]]:
                return x
            following[x], preceding[x + 1] = x + 1, x
    return -1


@njit(cache=True)
def last_free(begin, end, links):
    """The last place in [begin, end) that is not consumed, or -1."""
    following, preceding, numbers, consumed = links  # the links of a place to the one before are at the next place
    x = end - 1
    while x >= begin:
        x = root_of(preceding, x + 1) - 1
        if x >= begin:
            if not consumed[numbers[x]]:
                return x
            following[x], preceding[x + 1] = x + 1, x
    return -1


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
def doubled_rows(rows):
    larger = np.empty((2 * len(rows), rows.shape[1]), dtype=np.int64)
    larger[: len(rows)] = rows
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
