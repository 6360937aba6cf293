"""Secrets: passwords, tokens and keys that print as `***`.

`Secret` holds one; only `reveal()` returns its text. Other programs put secrets into their own messages: a database
driver quotes the URI it could not read. So every secret is also remembered, and `hidden` removes it from a text. All
errors of cedr and all messages of the command line go through `hidden`.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import NoReturn
from urllib.parse import quote, unquote

MASK = "***"
SECRET_NAME = re.compile(
    r"(?<![a-z])pass(?![a-z])|passw|passphrase|pwd|secret|token|credential|jaas|signature|authorization|bearer"
    r"|(?:access|api|private|account|shared|sas|encryption)[._-]?key|\.key$",
    re.IGNORECASE,
)
USER_INFO = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<user>[^\s/@:]*)(?::(?P<password>\S*))?@")
SETTING = re.compile(
    r"(?<![\w.-])(?P<key>[\w.-]+)(?P<equals>\s*=\s*)(?P<value>\"[^\"]*\"|'(?:[^'\\]|\\.)*'|[^\s&;,\"']+)"
)
SHORT, SHORTEST = 8, 4
"""Secrets shorter than `SHORT` are replaced only as whole words, so that texts stay readable. Secrets shorter than
`SHORTEST` are not replaced."""


class Secret:
    """A text that is never printed: `str`, `repr` and `format` return `***`. It cannot be pickled, so it does not leave
    this process."""

    __slots__ = ("_text",)

    def __init__(self, text: "str | Secret") -> None:
        self._text: str = text.reveal() if isinstance(text, Secret) else text
        remember(self._text)

    @classmethod
    def holding(cls, text: "str | Secret") -> "Secret":
        """A text that contains a secret, such as a URI with a password. Its other parts may be printed."""
        if isinstance(text, Secret):
            return text
        made = cls.__new__(cls)
        made._text = text
        remember_credentials(text)
        return made

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __str__(self) -> str:
        return MASK

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, memo: object) -> "Secret":
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a cedr.Secret cannot be pickled: it would be sent to other processes or to a disk")


class Discreet:
    """Base of dataclasses with user-written texts: no credentials in `repr`. Use with `@dataclass(repr=False)`."""

    def __repr__(self) -> str:
        values = ((f.name, getattr(self, f.name)) for f in fields(self) if f.repr)  # type: ignore[arg-type]
        return without_credentials(f"{type(self).__name__}({', '.join(f'{name}={v!r}' for name, v in values)})")


def text_of(value: "str | Secret") -> str:
    return value.reveal() if isinstance(value, Secret) else value


# --- settings by name ----------------------------------------------------------------------------------------------


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a secret, such as `kafka.sasl.jaas.config` or `sslPassword`."""
    return SECRET_NAME.search(name) is not None


def concealed(options: "Mapping[str, str | Secret]") -> "dict[str, str | Secret]":
    """The options, with secrets under names of secrets; passwords inside other texts are remembered."""
    for value in options.values():
        remember_credentials(text_of(value))
    return {key: Secret(value) if is_secret_name(key) else value for key, value in options.items()}


def revealed(options: "Mapping[str, str | Secret]") -> dict[str, str]:
    """The inverse of `concealed`."""
    return {key: text_of(value) for key, value in options.items()}


# --- texts ---------------------------------------------------------------------------------------------------------

KNOWN: set[str] = set()


def remember(text: str) -> None:
    """From now on `hidden` removes this text, also in its URI-encoded form. Common values such as true or 1000 are
    ignored."""
    if text in ("true", "false") or (text.isdecimal() and len(text) < SHORT):
        return
    for form in {text, text.strip(), " ".join(text.split()), quote(text, safe=""), unquote(text)}:
        if len(form) >= SHORTEST and form not in KNOWN:
            KNOWN.add(form)
            known_forms.cache_clear()


@lru_cache(maxsize=1)
def known_forms() -> re.Pattern[str]:
    longest_first = sorted(KNOWN, key=len, reverse=True)
    return re.compile(
        "|".join(re.escape(s) if len(s) >= SHORT else rf"(?<!\w){re.escape(s)}(?!\w)" for s in longest_first)
    )


def hidden(text: str) -> str:
    """The text without any remembered secret."""
    return known_forms().sub(MASK, text) if KNOWN else text


def remember_credentials(text: str) -> None:
    """Remember the passwords in URIs and in settings such as `password=...` that a text contains."""
    for found in USER_INFO.finditer(text):
        if (password := found["password"]) and password != found["user"]:
            remember(password)
    for found in SETTING.finditer(text):
        if is_secret_name(found["key"]):
            remember(found["value"].strip("\"'"))


def without_credentials(text: str) -> str:
    """A URI, path or other user-written text without the user names and passwords in it, for printing."""
    remember_credentials(text)
    text = USER_INFO.sub(rf"\g<scheme>://{MASK}@", text)
    text = SETTING.sub(lambda m: f"{m['key']}{m['equals']}{MASK}" if is_secret_name(m["key"]) else m[0], text)
    return hidden(text)
