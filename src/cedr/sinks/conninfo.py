"""Connection strings of PostgreSQL: a URI or a list of settings, possibly with a password, which is never shown.

libpq quotes text that it cannot parse, such as a password with an `@` or a space. So our errors omit quoted text, and
an ambiguous URI is rejected.
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
    """The connection string; raises if it cannot be parsed."""
    held = Secret.holding(dsn)
    parts = parsed(held)
    if password is None:
        return held
    if parts.get("password"):
        raise SinkError("the password is given twice, in the connection string and as password; leave one of them out")
    return Secret.holding(make_conninfo(held.reveal(), password=Secret(password).reveal()))


def server(dsn: Secret) -> str:
    """The server, without passwords."""
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
        problem = hidden(QUOTED.sub(f'"{MASK}"', one_line(e)))
        raise SinkError(f"the connection string cannot be read: {problem}; it looks like {EXAMPLES}") from None
    parts = {key: str(value) for key, value in found.items() if value is not None}
    plain = {parts.get(key) for key in SHOWN}
    for key in PASSWORDS:
        if key in parts and parts[key] not in plain:
            remember(parts[key])
    return parts


def is_clear(before: str) -> bool:
    """Whether a URI has at most one @, before the first slash."""
    user, at, _ = before.partition("@")
    return before.count("@") <= 1 and not (at and "/" in user)


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())
