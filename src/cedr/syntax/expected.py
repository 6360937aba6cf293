"""Syntax errors: the position, and a readable description of what was expected there.

The parser reports the terminals that could follow. Several of them together are one thing to a reader ("an
expression"), so they are described from the largest thing down.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

from lark import Token

from cedr.syntax.errors import LanguageError, did_you_mean, listed
from cedr.syntax.shape import FORMS
from cedr.syntax.tree import TextPosition

KEYWORDS = (
    "EVENT", "WHEN", "WHERE", "OUTPUT", "CONSISTENCY", "LATENCY", "SELECT", "FROM", "JOIN", "GROUP", "HAVING",
    "UNION", "EXCEPT", "INTERSECT", "BETWEEN", "DISTINCT", "SLIDING", "TUMBLING", "HOPPING", "SESSION",
    "EVERY", "FIRST", "LAST", "REUSE", "CONSUME", "STRONG", "MIDDLE", "WEAK", "BLOCK", "REMEMBER", "PERFECT",
    "RECURSIVE", "OVER", "ORDER", "REGISTER", "DEFINE", "REGEX",
    "ORDERED", "EAGER", "EQUAL", "UNIQUE", "SECONDS", "MINUTES", "HOURS", "DAYS",
)  # fmt: skip
"""Keywords that people misspell."""

OPERATORS = tuple(FORMS)
"""The pattern operators."""


class Thing(NamedTuple):
    """A description of terminals. It applies when all `marks` are expected, and then includes those of `covers`."""

    text: str
    marks: frozenset[str]
    covers: frozenset[str]


def thing(text: str, marks: str, covers: str = "") -> Thing:
    return Thing(text, frozenset(marks.split()), frozenset(f"{marks} {covers}".split()))


THINGS = (
    thing("'*', '+', '?' or a number in braces", "STAR SIGN MAYBE", "LBRACE"),
    thing("an expression", "NAME STRING _CASE", "QUOTED NUMBER LPAR LBRACE LSQB SIGN TRUTH _NULL NOT _CAST TIMESTAMP "
          "_CORRELATION_KEY STAR DISTINCT"),
    thing("an event type or an operator such as SEQUENCE", "NAME OPERATOR", "QUOTED"),
    thing("a constant", "STRING TRUTH", "_NULL TIMESTAMP NUMBER SIGN"),
    thing("a comparison or an operator", "COMPARISON", "SIGN CONCAT STAR DIVISION NOT _IS _IN _LIKE _BETWEEN _AND _OR"),
    thing("an operator", "SIGN STAR", "CONCAT DIVISION _AND _OR"),
    thing("a time", "NUMBER STRING", "TIMESTAMP INFINITY SIGN"),
    thing("a name", "NAME", "QUOTED"),
    thing("an attribute", "ATTRIBUTE", "QUOTED STAR"),
    thing("a number or a duration", "NUMBER INFINITY"),
    thing("a number", "NUMBER"),
    thing("a unit of time such as minutes", "UNIT"),
    thing("a text in quotes", "STRING"),
    thing("EACH, FIRST or LAST", "SELECTION"),
    thing("REUSE or CONSUME", "CONSUMPTION"),
    thing("EQUAL or UNIQUE", "MODE"),
    thing("STRONG, MIDDLE or WEAK", "LEVEL"),
    thing("perfect, ordered or eager", "HOW_EARLY"),
    thing("a window", "_SLIDING", "_TUMBLING _HOPPING _SESSION"),
    thing("JOIN", "_JOIN", "HOW"),
    thing("UNION, EXCEPT or INTERSECT", "SET_OPERATOR"),
    thing("CorrelationKey", "_CORRELATION_KEY"),
    thing("'||'", "CONCAT"),
    thing("'*'", "STAR"),
    thing("'+' or '-'", "SIGN"),
    thing("the end", "$END"),
)  # fmt: skip

SIGNS = {
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "COMMA": "','",
    "DOT": "'.'",
    "SEMICOLON": "';'",
    "VBAR": "'|'",
    "AT": "'@'",
    "HASH": "'#'",
}

QUIET = {"SEMICOLON", "AT", "HASH", "DOT", "CONSUMPTION", "SELECTION", "_LATENCY", "_EVENT", "_RECURSIVE"}
"""Terminals that are valid in many places but seldom intended; described only when there is nothing else."""


def described(terminals: Iterable[str]) -> str:
    left = set(terminals)
    texts: list[str] = []
    for one in THINGS:
        if one.marks <= left:
            texts.append(one.text)
            left -= one.covers
    rest = sorted(left - QUIET) or ([] if texts else sorted(left - {"SEMICOLON"}))
    return listed(texts + [SIGNS.get(name, name.strip("_")) for name in rest])


# --- the errors ----------------------------------------------------------------------------------------------------


def unexpected_character(text: str, position: int, expected: set[str], at: TextPosition) -> LanguageError:
    """No token begins with this character."""
    character = text[position]
    if character in "'‘":
        return LanguageError("this text has no closing quote", at)
    if character == '"':
        return LanguageError('this name has no closing quote, or is empty; write for example "Machine Id"', at)
    return LanguageError(f"unexpected {character!r}; expected {described(expected)}", at)


def unexpected_token(token: Token, text: str, expected: set[str], at: TextPosition) -> LanguageError:
    """A valid token, but not at this place."""
    if not text.strip():
        return LanguageError("there is no query; write for example EVENT Alert WHEN SEQUENCE(A x, B y, 5 minutes)", at)
    if token.type == "$END":
        return LanguageError(f"the query ends too early; expected {described(expected)}", at)
    if text.startswith("/*", token.start_pos or 0):
        return LanguageError("this comment has no end; close it with */", at)
    before = re.search(r"([^\W\d]\w*)\s*$", text[: token.start_pos or 0])
    if token.type == "LPAR" and before and {"SELECTION", "_AS"} <= expected:
        names = (*OPERATORS, "REGEX")
        hint = f"{did_you_mean(before[1], names)} (operators: {', '.join(names)})"
        return LanguageError(f"there is no pattern operator {before[1]!r}{hint}", back(at, len(before[0])))
    wrong = f"unexpected {token.value!r}; expected {described(expected)}"
    if "NAME" in expected and token.value.isalpha():
        return LanguageError(f'{wrong}; {token.value} is a keyword: to use it as a name, write "{token.value}"', at)
    return LanguageError(wrong + misspelt(token.value, before[1] if before else ""), at)


def back(at: TextPosition, width: int) -> TextPosition:
    """The place just before, if it is on the same line."""
    return at if width >= at.column else at._replace(column=at.column - width, end_column=at.column)


def misspelt(text: str, before: str) -> str:
    """A hint to the keyword that was probably intended here or just before, where a name is also valid."""
    for candidate in (text, before):
        upper = candidate.upper()
        if upper not in KEYWORDS and (near := get_close_matches(upper, KEYWORDS, n=1, cutoff=0.75)):
            return f"; did you mean {near[0]} for {candidate!r}?"
    return ""
