"""The syntax tree of a regular expression, as frozen data with the place of each node in the text."""

from dataclasses import dataclass

from cedr.syntax.tree import Syntax


@dataclass(frozen=True)
class Regex(Syntax):
    """Any regular expression."""


@dataclass(frozen=True)
class RegexStep(Regex):
    """One event that takes this step."""

    name: str


@dataclass(frozen=True)
class RegexSequence(Regex):
    parts: tuple[Regex, ...]


@dataclass(frozen=True)
class RegexChoice(Regex):
    parts: tuple[Regex, ...]


@dataclass(frozen=True)
class RegexRepeat(Regex):
    """Repeated `least` to `most` times; None means no upper limit."""

    part: Regex
    least: int
    most: int | None
