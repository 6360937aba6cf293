"""Quantifiers: how often a part of a regular expression is repeated."""

from cedr.syntax.errors import LanguageError
from cedr.syntax.tree import TextPosition

SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def between(least: int, most: int | None, at: TextPosition) -> tuple[int, int | None]:
    """`{least,most}`; None means no upper limit."""
    if most is not None and most < max(least, 1):
        problem = f"{{{least},{most}}} repeats nothing; the last number must be at least 1 and not below the first"
        raise LanguageError(problem, at)
    return least, most
