"""How to connect to PostgreSQL: a URI or a list of settings, in which there may be a password that is never shown.

libpq quotes the text it cannot read, and a password with an `@` or a space is such a text. So what libpq quotes is left
out of our errors, and a URI that could be read in two ways is refused.
"""

import re

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cedr.secret import MASK, Secret, hidden, remember
from cedr.sinks.base import SinkError

SHOWN = ("host", "hostaddr", "port", "dbname", "user", "service")
PASSWORDS = ("password", "sslpassword")
URI = re.compile(r"postgres(?:ql)?://(?P<before>[^?]*)(?P<query>\?.*)?", re.DOTALL)
EXAMPLES = '"host=localhost dbname=reports user=me" or "postgresql://me@localhost/reports"'
QUOTED = re.compile(r"\"[^\"]*\"?")


def connection(dsn: str | Secret, password: str | Secret | None = None) -> Secret:
    """The text to connect with; an error when it cannot be read."""
    held = Secret.holding(dsn)
    parts = parsed(held)
    if password is None:
        return held
    if parts.get("password"):
        raise SinkError("the connection string has a password, and password is given, too; leave one of them out")
    return Secret.holding(make_conninfo(held.reveal(), password=Secret(password).reveal()))


def server(dsn: Secret) -> str:
    """Where it leads, without passwords."""
    parts = parsed(dsn)
    return " ".join(f"{key}={parts[key]}" for key in SHOWN if key in parts) or "default"


def parsed(dsn: Secret) -> dict[str, str]:
    text = dsn.reveal()
    if (uri := URI.fullmatch(text)) and not is_clear(uri["before"]):
        raise SinkError(
            "the connection string cannot be read: it has an @ or / inside a name or a password. "
            "Write %40 for @ and %2F for /, or give the password by itself: password"
        )
    try:
        found = conninfo_to_dict(text)
    except psycopg.Error as e:
        said = hidden(QUOTED.sub(f'"{MASK}"', one_line(e)))
        raise SinkError(f"the connection string cannot be read: {said}; it looks like {EXAMPLES}") from None
    parts = {key: str(value) for key, value in found.items() if value is not None}
    plain = {parts.get(key) for key in SHOWN}
    for key in PASSWORDS:
        if key in parts and parts[key] not in plain:
            remember(parts[key])
    return parts


def is_clear(before: str) -> bool:
    """Is there at most one @ in a URI, before the first slash?"""
    user, at, _ = before.partition("@")
    return before.count("@") <= 1 and not (at and "/" in user)


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())
