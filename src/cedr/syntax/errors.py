"""Errors in a query, displayed with a caret below the place.

line 2, column 15: there is no event type 'INSTAL'; did you mean 'INSTALL'?
  WHEN SEQUENCE(INSTAL x, SHUTDOWN y, 12 hours)
                ^^^^^^
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

from cedr.syntax.tree import TextPosition
from cedr.temporal.errors import CedrError, QueryError

WIDEST = 120
"""Maximum width of a displayed line; of a longer line the part around the error is displayed."""


class LanguageError(QueryError):
    """An invalid query; `problem` describes the error and a correct alternative."""

    def __init__(self, problem: str, at: TextPosition, text: str = "") -> None:
        self.problem, self.at, self.text = problem, at, text
        super().__init__(message(problem, at, text))

    @property
    def line(self) -> int:
        return self.at.line

    @property
    def column(self) -> int:
        return self.at.column

    def within(self, text: str) -> "LanguageError":
        """The same error, displayed with the text that contains it."""
        return LanguageError(self.problem, self.at, text)


@contextmanager
def located(at: TextPosition) -> Iterator[None]:
    """Errors of other packages, such as rules of the plan, are reported at this position."""
    try:
        yield
    except LanguageError:
        raise
    except CedrError as e:
        raise LanguageError(str(e), at) from None


def message(problem: str, at: TextPosition, text: str) -> str:
    located = f"line {at.line}, column {at.column}: {problem}"
    if not text:
        return located
    line = (text.split("\n")[at.line - 1 :] or [""])[0].rstrip()
    end = at.end_column if at.end_line == at.line else len(line) + 1
    start = at.column - 1
    indent = min(len(line) - len(line.lstrip()), start)
    if len(line) - indent > WIDEST:
        indent = max(indent, start - WIDEST // 2)
    excerpt = line[indent : indent + WIDEST].replace("\t", " ")
    carets = max(min(end - at.column, WIDEST - (start - indent)), 1)
    return f"{located}\n  {excerpt}\n  {' ' * (start - indent)}{'^' * carets}"


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """A hint to the most similar candidate, or an empty text."""
    names = list(dict.fromkeys(candidates))
    same = [n for n in names if n.lower() == name.lower()]
    near = same or get_close_matches(name, names, n=1) or lower_case_match(name, names)
    return f"; did you mean {near[0]!r}?" if near else ""


def lower_case_match(name: str, names: list[str]) -> list[str]:
    lower = {n.lower(): n for n in names}
    return [lower[n] for n in get_close_matches(name.lower(), lower, n=1)]


def listed(names: Iterable[str], last: str = "or") -> str:
    """`a, b or c`."""
    texts = list(names)
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {last} {texts[-1]}" if texts else "nothing"
