"""Text to syntax tree. The grammar is in grammar.lark, the syntax tree is built in build.py."""

from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, UnexpectedCharacters, UnexpectedToken
from lark.exceptions import VisitError

from cedr.syntax import tree
from cedr.syntax.build import Build
from cedr.syntax.errors import LanguageError
from cedr.syntax.expected import OPERATORS, unexpected_character, unexpected_token
from cedr.syntax.literals import place_of
from cedr.syntax.tree import TextPosition

DEEPEST = 100
"""Maximum depth of nesting; a deeper query is a mistake, and would exceed the recursion limit of later steps."""


def parse(text: str) -> tree.ParsedScript:
    """The statements of a text, or a `LanguageError` about the first error."""
    try:
        script: tree.ParsedScript = understood(text)
        if tree.depth(script) > DEEPEST:
            raise LanguageError(
                f"the query is nested deeper than {DEEPEST} levels; use several statements", TextPosition()
            )
    except LanguageError as e:
        raise e.within(text) from None
    return script


def parse_scalar(text: str) -> tree.ParsedScalar:
    """A scalar expression by itself."""
    try:
        scalar: tree.ParsedScalar = understood(text, "expression")
        if tree.depth(scalar) > DEEPEST:
            raise LanguageError(f"the expression is nested deeper than {DEEPEST} levels", TextPosition())
    except LanguageError as e:
        raise e.within(text) from None
    return scalar


def understood(text: str, start: str = "start") -> Any:
    try:
        script = Build().transform(parser().parse(text, start=start))
    except UnexpectedCharacters as e:
        at = TextPosition(e.line, e.column, e.line, e.column + 1)
        raise unexpected_character(text, e.pos_in_stream or 0, expected_before(text, start), at) from None
    except UnexpectedToken as e:
        raise unexpected_token(e.token, text, e.accepts or e.expected, where(e.token, text)) from None
    except VisitError as e:
        raise e.orig_exc from None
    return script


def expected_before(text: str, start: str) -> set[str]:
    """The terminals that could follow the last valid token."""
    state = parser().parse_interactive(text, start=start)
    with suppress(UnexpectedCharacters):
        state.exhaust_lexer()
    accepted: set[str] = state.accepts()  # type: ignore[no-untyped-call]
    return accepted


def where(token: Token, text: str) -> TextPosition:
    if token.type != "$END":
        return place_of(token)
    lines = text.rstrip().split("\n")
    return TextPosition(len(lines), len(lines[-1]) + 1, len(lines), len(lines[-1]) + 2)


@cache
def parser() -> Lark:
    grammar = (files("cedr.syntax") / "grammar.lark").read_text(encoding="utf-8")
    grammar = grammar.replace("{pattern_operators}", "|".join(map(keyword_regex, sorted(OPERATORS, reverse=True))))
    return Lark(
        grammar, start=["start", "expression"], parser="lalr", propagate_positions=True, maybe_placeholders=False
    )


def keyword_regex(keyword: str) -> str:
    """A keyword that may be written with _ for -."""
    return keyword.lower().replace("-", "[-_]")
