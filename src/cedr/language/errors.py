"""Mistakes in a query, shown where they are.

line 2, column 15: there is no event type 'INSTAL'; did you mean 'INSTALL'?
  WHEN SEQUENCE(INSTAL x, SHUTDOWN y, 12 hours)
                ^^^^^^
"""

from collections.abc import Iterable
from difflib import get_close_matches

from cedr.language.tree import Place
from cedr.temporal.errors import QueryError

WIDEST = 120
"""Of a longer line, the part around the mistake is shown."""


class LanguageError(QueryError):
    """A query that cannot be understood; `problem` says what is wrong and what would be right."""

    def __init__(self, problem: str, at: Place, text: str = "") -> None:
        self.problem, self.at, self.text = problem, at, text
        super().__init__(message(problem, at, text))

    @property
    def line(self) -> int:
        return self.at.line

    @property
    def column(self) -> int:
        return self.at.column

    def within(self, text: str) -> "LanguageError":
        """The same mistake, shown in the text it is in."""
        return LanguageError(self.problem, self.at, text)


def message(problem: str, at: Place, text: str) -> str:
    said = f"line {at.line}, column {at.column}: {problem}"
    if not text:
        return said
    line = (text.split("\n")[at.line - 1 :] or [""])[0].rstrip()
    end = at.end_column if at.end_line == at.line else len(line) + 1
    start = at.column - 1
    indent = min(len(line) - len(line.lstrip()), start)
    if len(line) - indent > WIDEST:
        indent = max(indent, start - WIDEST // 2)
    shown = line[indent : indent + WIDEST].replace("\t", " ")
    carets = max(min(end - at.column, WIDEST - (start - indent)), 1)
    return f"{said}\n  {shown}\n  {' ' * (start - indent)}{'^' * carets}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint to the nearest of the known names, or nothing."""
    names = list(dict.fromkeys(known))
    same = [n for n in names if n.lower() == name.lower()]
    near = same or get_close_matches(name, names, n=1) or lower_case_match(name, names)
    return f"; did you mean {near[0]!r}?" if near else ""


def lower_case_match(name: str, names: list[str]) -> list[str]:
    lower = {n.lower(): n for n in names}
    return [lower[n] for n in get_close_matches(name.lower(), lower, n=1)]


def listed(names: Iterable[str], last: str = "or") -> str:
    """`a, b or c`."""
    words = list(names)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else "nothing"
