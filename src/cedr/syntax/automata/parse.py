"""Text to regular expression; an error is displayed with a caret below it."""

from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedToken, v_args
from lark.exceptions import VisitError
from lark.tree import Meta

from cedr.syntax.automata import tree
from cedr.syntax.automata.quantifiers import SIGNS, between
from cedr.syntax.errors import LanguageError, listed
from cedr.syntax.literals import place, place_of
from cedr.syntax.parse import DEEPEST, where
from cedr.syntax.tree import TextPosition, depth

DESCRIPTIONS = {
    "NAME": "a step",
    "LPAR": "'('",
    "RPAR": "')'",
    "VBAR": "'|'",
    "STAR": "'*'",
    "PLUS": "'+'",
    "MAYBE": "'?'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "COMMA": "','",
    "NUMBER": "a number",
    "$END": "the end",
}
"""Terminals as described in error messages."""


def parse_regex(text: str) -> tree.Regex:
    try:
        found = understood(text)
        if depth(found) > DEEPEST:
            raise LanguageError(f"the expression is nested deeper than {DEEPEST} levels", TextPosition())
    except LanguageError as e:
        raise e.within(text) from None
    return found


def understood(text: str) -> tree.Regex:
    try:
        found: tree.Regex = BuildRegex().transform(parser().parse(text))
    except UnexpectedCharacters as e:
        at = TextPosition(e.line, e.column, e.line, e.column + 1)
        raise LanguageError(f"unexpected {e.char!r}; expected {expected(e.allowed or set())}", at) from None
    except UnexpectedToken as e:
        early = e.token.type == "$END"
        wrong = "the expression ends too early" if early else f"unexpected {str(e.token)!r}"
        problem = f"{wrong}; expected {expected(e.accepts or e.expected)}"
        raise LanguageError(problem, where(e.token, text)) from None
    except VisitError as e:
        raise e.orig_exc from None
    return found


def expected(terminals: set[str]) -> str:
    return listed([text for terminal, text in DESCRIPTIONS.items() if terminal in terminals])


@cache
def parser() -> Lark:
    grammar = (files("cedr.syntax.automata") / "regex.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True)


@v_args(meta=True)
class BuildRegex(Transformer[Token, Any]):
    """From parse tree to regular expression, one method per grammar rule."""

    def start(self, meta: Meta, found: list[Any]) -> Any:
        return found[0]

    def step(self, meta: Meta, found: list[Any]) -> tree.Regex:
        return tree.RegexStep(str(found[0]), at=place_of(found[0]))

    def sequence(self, meta: Meta, found: list[Any]) -> tree.Regex:
        return tree.RegexSequence(tuple(found), at=place(meta))

    def choice(self, meta: Meta, found: list[Any]) -> tree.Regex:
        return tree.RegexChoice(tuple(found), at=place(meta))

    def repeat(self, meta: Meta, found: list[Any]) -> Any:
        made, *quantifiers = found
        for least, most in quantifiers:
            made = tree.RegexRepeat(made, least, most, at=place(meta))
        return made

    def quantifier(self, meta: Meta, found: list[Any]) -> tuple[int, int | None]:
        return SIGNS[str(found[0])]

    def exactly(self, meta: Meta, found: list[Any]) -> tuple[int, int | None]:
        return self.between(meta, [found[0], found[0]])

    def at_least(self, meta: Meta, found: list[Any]) -> tuple[int, int | None]:
        return int(found[0]), None

    def between(self, meta: Meta, found: list[Any]) -> tuple[int, int | None]:
        return between(int(found[0]), int(found[1]), place(meta))
