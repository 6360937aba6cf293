"""What a regular expression says, as frozen data, with the place where it was written."""

from dataclasses import dataclass

from cedr.language.tree import Syntax


@dataclass(frozen=True)
class Regex(Syntax):
    """Any regular expression."""


@dataclass(frozen=True)
class Take(Regex):
    """One event that takes this step."""

    name: str


@dataclass(frozen=True)
class Then(Regex):
    parts: tuple[Regex, ...]


@dataclass(frozen=True)
class Or(Regex):
    parts: tuple[Regex, ...]


@dataclass(frozen=True)
class Repeat(Regex):
    """From `least` to `most` times; None is without limit."""

    part: Regex
    least: int
    most: int | None
