"""The values of single tokens: places, texts, numbers, durations, timestamps."""

from datetime import UTC, datetime, timedelta
from typing import Any

from lark import Token
from lark.tree import Meta

from cedr.syntax import tree
from cedr.syntax.errors import LanguageError
from cedr.syntax.tree import TextPosition
from cedr.temporal.duration import duration
from cedr.temporal.errors import CedrError
from cedr.temporal.time import INF


def place(meta: Meta) -> TextPosition:
    return TextPosition(meta.line, meta.column, meta.end_line, meta.end_column)


def place_of(token: Token) -> TextPosition:
    line, column = token.line or 1, token.column or 1
    return TextPosition(line, column, token.end_line or line, token.end_column or column + 1)


def unquoted(token: Token) -> str:
    return token[1:-1].replace("''", "'") if token.startswith("'") else token[1:-1]


def number(token: Token) -> tree.ParsedNumber:
    found = tree.ParsedNumber(token.lower(), at=place_of(token))
    if len(token) > 400 or not (-INF <= found.value <= INF if token.isdecimal() else abs(found.value) < float("inf")):
        raise LanguageError("the number is too large; whole numbers have 64 bits", found.at)
    return found


def amount(found: Any) -> Any:
    return tree.ParsedInfinity(at=place_of(found)) if isinstance(found, Token) else found


def checked(length: tree.ParsedLength) -> tree.ParsedLength:
    if any("e" in number.lower() for number, _ in length.parts):
        raise LanguageError("a duration takes plain numbers; write for example 1500 ms", length.at)
    try:
        duration(length.value, least=0)
    except (CedrError, OverflowError):
        problem = "the duration is too large; its microseconds must fit into 64 bits"
        raise LanguageError(problem, length.at) from None
    return length


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp(token: Token) -> tree.ParsedTimestamp:
    """`TIMESTAMP '2024-01-31 12:00'`; without a zone it is UTC, as in tables without a zone."""
    text = unquoted(Token("STRING", token[token.find("'") :] if "'" in token else token)).strip()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        problem = f"{text!r} is not a timestamp; write for example '2024-01-31 12:00:00'"
        raise LanguageError(problem, place_of(token)) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return tree.ParsedTimestamp(text, (moment - EPOCH) // timedelta(microseconds=1), at=place_of(token))
