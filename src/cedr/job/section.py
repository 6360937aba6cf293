"""A table of a job file with its place: values by key and kind, and errors at the right line.

A section checks its keys. An unknown key is an error that suggests the nearest one; so is a value of another kind.
Errors of other packages (`cedr.source`, `cedr.files`, a sink) are reported under the key they are about.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cedr.job.mistake import JobError
from cedr.job.places import KeyLines
from cedr.job.places import Path as Keys
from cedr.secret import Discreet, Secret
from cedr.syntax.errors import did_you_mean, listed
from cedr.temporal.errors import CedrError


class ValueKind(NamedTuple):
    """What a value may be; `text` and `example` are for errors."""

    text: str
    example: str
    holds: Callable[[Any], bool]


def is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


TEXT = ValueKind("a string", '"..."', lambda v: isinstance(v, str | Secret))
WHOLE = ValueKind("an integer", "10", is_whole)
FLAG = ValueKind("true or false", "true", lambda v: isinstance(v, bool))
LENGTH = ValueKind("a duration", '"5s"', lambda v: isinstance(v, str) or is_whole(v))
TEXTS = ValueKind("a list of strings", '["a", "b"]', is_texts)
NAMES = ValueKind("a string or a list of strings", '"column"', lambda v: isinstance(v, str) or is_texts(v))
COLUMN_OR_FLAG = ValueKind("a column or true", '"column"', lambda v: isinstance(v, str | bool))
SCHEMES = ValueKind(
    "a column or a list of columns",
    '["hour", ["zone", "hour"]]',
    lambda v: isinstance(v, str) or (isinstance(v, list) and all(isinstance(s, str) or is_texts(s) for s in v)),
)
TABLE = ValueKind("a table", "{ key = value }", lambda v: isinstance(v, dict))

SHOWN = 60


@dataclass(frozen=True, repr=False)
class Section(Discreet):
    """`path` is its position: `("sources", "readings")`; `folder` is that of the job file."""

    file: str
    folder: Path
    path: Keys
    values: Mapping[str, Any]
    places: Mapping[Keys, KeyLines]

    def __contains__(self, key: str) -> bool:
        return key in self.values

    # --- errors ------------------------------------------------------------------------------------------------------

    def mistake(self, problem: str, *keys: str, line: int | None = None) -> JobError:
        """An error about a key of this section, or the section itself."""
        path = (*self.path, *keys)
        return JobError(self.file, line or self.line(*keys), ".".join(map(shown_key, path)), problem)

    def line(self, *keys: str) -> int | None:
        """The line of the key, or of the nearest enclosing table that is in the file."""
        path = (*self.path, *keys)
        found = (self.places.get(path[:length]) for length in range(len(path), 0, -1))
        return next((place.line for place in found if place), None)

    @contextmanager
    def about(self, *names: str, key: str = "") -> Iterator[None]:
        """Reports errors of other packages under the key they name, or else `key`; drops the prefixes `names`."""
        try:
            yield
        except JobError:
            raise
        except CedrError as e:
            message = str(e)
            named = [(m.start(), k) for k in self.values if (m := re.search(rf"\b{re.escape(k)}(?==| is )", message))]
            about = min(named)[1] if named else key
            text = next((message.removeprefix(f"{n}: ") for n in names if message.startswith(f"{n}: ")), message)
            raise self.mistake(text, *([about] if about else [])) from None

    # --- keys --------------------------------------------------------------------------------------------------------

    def check_keys(self, known: Mapping[str, ValueKind]) -> None:
        """Raise for other keys than these, and for values of another kind."""
        for key, value in self.values.items():
            if key not in known:
                raise self.unknown(key, known)
            kind = known[key]
            if value == "" or (isinstance(value, Secret) and not value):
                raise self.mistake(f"{key} is empty; write {key} = {kind.example}, or leave it out", key)
            if not kind.holds(value):
                raise self.mistake(f"{show(value)} is not {kind.text}; write {key} = {kind.example}", key)

    def unknown(self, key: str, known: Sequence[str] | Mapping[str, Any]) -> JobError:
        hint = did_you_mean(key, known) or f"; the keys here are {listed(known, 'and')}"
        return self.mistake(f"there is no such key{hint}", key)

    def one_of(self, *keys: str, what: str) -> str:
        """The one of these keys that is present."""
        there = [key for key in keys if key in self.values]
        if not there:
            raise self.mistake(f"{what} is missing; write {listed(keys)}")
        if len(there) > 1:
            raise self.mistake(f"{listed(there, 'and')} cannot be combined; keep one of them", there[1])
        return there[0]

    def need(self, key: str, why: str, example: str) -> Any:
        if key not in self.values:
            raise self.mistake(f"{key} is missing, {why}; write {key} = {example}")
        return self.values[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    def pick(self, *keys: str) -> dict[str, Any]:
        """Those of these keys that are present."""
        return {key: self.values[key] for key in keys if key in self.values}

    def choice(self, key: str, allowed: Sequence[str]) -> str | None:
        value = self.values.get(key)
        if value is not None and value not in allowed:
            hint = did_you_mean(value, allowed)
            raise self.mistake(f"{show(value)} is not one of {listed(allowed)}{hint}", key)
        return None if value is None else str(value)

    def place(self, key: str) -> str:
        """A path of the file system, relative to the folder of the job file."""
        path = str(self.values[key])
        if "\0" in path:
            raise self.mistake(f"{path!r} is not a path; it contains a zero character", key)
        try:
            return placed(self.folder, path)
        except RuntimeError:
            raise self.mistake(
                f"{show(path)}: there is no home folder for {path.partition('/')[0][1:]!r}", key
            ) from None

    def sub(self, key: str) -> "Section":
        return Section(self.file, self.folder, (*self.path, key), self.values[key], self.places)


def placed(folder: Path, path: str) -> str:
    """Relative paths start at the folder of the job file; URLs stay unchanged."""
    if "://" in path:
        return path
    return str(folder / Path(path).expanduser())


def shown_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else f'"{key}"'


def show(value: Any) -> str:
    """A value in TOML syntax, truncated when it is long."""
    if isinstance(value, bool):
        return str(value).lower()
    text = f'"{value}"' if isinstance(value, str | Secret) else "a table" if isinstance(value, dict) else str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
