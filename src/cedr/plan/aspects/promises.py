"""Schemes: about which columns the punctuations in a stream can be.

A scheme is a set of columns. The empty one means CTIs, which are about everything. Each has a flag: whether
promises about it may be without end, so that a value of these columns can be done. Progress never is: it only states
how far a value has come.

    source with a delay                                () as progress
    source with a delay per machine                    (machine) as progress
    source with punctuations about order_id            (order_id) without end
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import product

Names = tuple[str, ...]
"""Sorted."""
Schemes = Mapping[Names, bool]
"""Sets of columns, and whether promises about them may be without end."""

CTI: Names = ()
CTI_ONLY: Schemes = {CTI: False}


def called(schemes: Schemes, names: Mapping[str, Sequence[str]]) -> Schemes:
    """Schemes by other names, of which a column may have several, or none."""
    found: dict[Names, bool] = {}
    for columns, ends in schemes.items():
        for chosen in product(*(names.get(name, ()) for name in columns)):
            found[tuple(sorted(chosen))] = ends
    return found


def renamed(schemes: Schemes, names: Mapping[str, str]) -> Schemes:
    """The schemes of these columns only, by their new names."""
    return {
        tuple(sorted(names[name] for name in columns)): ends
        for columns, ends in schemes.items()
        if set(columns) <= names.keys()
    }


def narrowed(schemes: Schemes, columns: Iterable[str]) -> Schemes:
    """The schemes of these columns only."""
    return renamed(schemes, {name: name for name in columns})


def combined(sides: Iterable[Schemes]) -> Schemes:
    """What several inputs promise together."""
    return reduce(both, sides)


def both(one: Schemes, two: Schemes) -> Schemes:
    """What two inputs promise together: about the larger of two sets of columns, one of which contains the other."""
    found: dict[Names, bool] = {}
    for (mine, ends), (theirs, they_end) in product(one.items(), two.items()):
        large, small = (mine, theirs) if len(mine) >= len(theirs) else (theirs, mine)
        if set(small) <= set(large):
            found[large] = found.get(large, False) or (ends and they_end)
    return found
