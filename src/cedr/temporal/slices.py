"""Sliced lists: a stream as a sequence of lists of elements (punctuation paper, 2.1).

A slice contains the elements that arrived since the last read; it may be empty. How a stream is sliced does not matter:
only the concatenation counts. A finite stream is one whose slices are empty from some point on.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def joined(slices: Iterable[Sequence[T]]) -> list[T]:
    """The stream itself."""
    return [element for piece in slices for element in piece]


def prefix(slices: Sequence[Sequence[T]], i: int) -> list[T]:
    """`S[i]`: all elements of the first i slices."""
    return joined(slices[:i])
