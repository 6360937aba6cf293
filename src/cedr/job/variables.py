"""`${NAME}` and `${file:PATH}` in the texts of a job file, and which of its texts are secrets.

`${NAME}` is an environment variable, `${file:PATH}` the content of a file without the last line break; `$${` is a
literal `${`. Connection strings, passwords, options with secret-sounding names, and everything read from a file become
secrets. A query must not contain any: it is kept in the checkpoint, and `explain` shows it.
"""

import os
import re
from pathlib import Path
from typing import Any

from cedr.job.section import Section, placed
from cedr.secret import Secret, is_secret_name, remember, remember_credentials

VARIABLE = re.compile(r"\$\$\{|\$\{(?P<inside>[^}\n]*)(?P<end>\}?)")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
FILE = "file:"
LARGEST = 1 << 20


def filled(top: Section) -> Section:
    """The job file with its variables filled in and its secrets wrapped."""
    values = {key: filled_value(top, (key,), value) for key, value in top.values.items()}
    return Section(top.file, top.folder, top.path, values, top.places)


def filled_value(top: Section, path: tuple[str, ...], value: Any) -> Any:
    if isinstance(value, dict):
        return {key: filled_value(top, (*path, key), inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled_value(top, path, inner) for inner in value]
    return filled_text(top, path, value) if isinstance(value, str) else value


def filled_text(top: Section, path: tuple[str, ...], text: str) -> str | Secret:
    used: list[str] = []

    def replacement(found: re.Match[str]) -> str:
        if found["inside"] is None:
            return "${"
        if not found["end"]:
            raise top.mistake("there is no } after ${; write ${NAME}, or $${ for a literal ${", *path)
        used.append(found["inside"])
        return variable(top, path, found["inside"])

    made = VARIABLE.sub(replacement, text)
    secret = [name for name in used if name.startswith(FILE) or is_secret_name(name)]
    if secret and path[0] == "query":
        raise top.mistake(
            f"${{{secret[0]}}} is a secret, and a query is kept in the checkpoint and shown by explain; "
            "give the variable another name if its value is not a secret",
            *path,
        )
    if path[0] != "query":
        remember_credentials(made)
    if holds_connection(path):
        return Secret.holding(made)
    if is_option(path) and (secret or is_secret_name(".".join(path[2:]))):
        return Secret(made)
    return Secret(made) if is_password(path) else made


def variable(top: Section, path: tuple[str, ...], inside: str) -> str:
    if inside.startswith(FILE):
        return content(top, path, inside.removeprefix(FILE))
    if not NAME.fullmatch(inside):
        raise top.mistake(
            f"${{{inside}}} is not a variable; write ${{NAME}} for an environment variable, ${{file:PATH}} for the "
            "content of a file, or $${ for a literal ${",
            *path,
        )
    if inside not in os.environ:
        raise top.mistake(f"the environment variable {inside} is not set; set it before you start cedr", *path)
    return os.environ[inside]


def content(top: Section, path: tuple[str, ...], file: str) -> str:
    """The content of a file, which is a secret; of a connection string, only the password is."""
    place = Path(placed(top.folder, file))
    try:
        with place.open("rb") as opened:
            read = opened.read(LARGEST + 1)
        if len(read) > LARGEST:
            raise top.mistake(f"${{file:{file}}}: {place} is larger than 1 MB; a secret is a short text", *path)
        text = read.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except OSError as e:
        raise top.mistake(f"${{file:{file}}}: {place} cannot be read: {e.strerror}", *path) from None
    except (UnicodeDecodeError, ValueError):
        raise top.mistake(f"${{file:{file}}}: {place} is not UTF-8 text", *path) from None
    if not holds_connection(path):
        remember(text)
    return text


# --- where secrets are ---------------------------------------------------------------------------------------------


def holds_connection(path: tuple[str, ...]) -> bool:
    return len(path) == 3 and path[0] == "sinks" and path[2] == "postgres"


def is_password(path: tuple[str, ...]) -> bool:
    return len(path) == 3 and path[0] == "sinks" and path[2] == "password"


def is_option(path: tuple[str, ...]) -> bool:
    """An option of Spark, or of one of its sources and sinks. Columns may have any name."""
    if path[:2] == ("spark", "conf"):
        return True
    return len(path) > 3 and path[0] in ("sources", "sinks") and path[2] != "columns"
