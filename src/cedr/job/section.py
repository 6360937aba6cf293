"""A table of a job file with its place: values by key and kind, and mistakes named where they are.

A section knows its keys. One that is not among them is a mistake, with the nearest that is; so is a value of another
kind. What other rooms of cedr refuse (`cedr.source`, `cedr.files`, a sink) is told under the key it is about.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cedr.job.mistake import JobError
from cedr.job.places import Path as Keys
from cedr.job.places import Place
from cedr.language.errors import did_you_mean, listed
from cedr.secret import Discreet, Secret
from cedr.temporal.errors import CedrError


class Kind(NamedTuple):
    """What a value may be; `words` and `example` are for mistakes."""

    words: str
    example: str
    holds: Callable[[Any], bool]


def is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


TEXT = Kind("a text", '"..."', lambda v: isinstance(v, str | Secret))
WHOLE = Kind("a whole number", "10", is_whole)
FLAG = Kind("true or false", "true", lambda v: isinstance(v, bool))
LENGTH = Kind("a length of time", '"5s"', lambda v: isinstance(v, str) or is_whole(v))
TEXTS = Kind("a list of texts", '["a", "b"]', is_texts)
NAMES = Kind("a text or a list of texts", '"column"', lambda v: isinstance(v, str) or is_texts(v))
COLUMN_OR_FLAG = Kind("a column or true", '"column"', lambda v: isinstance(v, str | bool))
SCHEMES = Kind(
    "a column or a list of columns",
    '["hour", ["zone", "hour"]]',
    lambda v: isinstance(v, str) or (isinstance(v, list) and all(isinstance(s, str) or is_texts(s) for s in v)),
)
TABLE = Kind("a table", "{ key = value }", lambda v: isinstance(v, dict))

SHOWN = 60


@dataclass(frozen=True, repr=False)
class Section(Discreet):
    """`path` is where it stands: `("sources", "readings")`; `folder` is that of the job file."""

    file: str
    folder: Path
    path: Keys
    values: Mapping[str, Any]
    places: Mapping[Keys, Place]

    def __contains__(self, key: str) -> bool:
        return key in self.values

    # --- mistakes ----------------------------------------------------------------------------------------------------

    def mistake(self, problem: str, *keys: str, line: int | None = None) -> JobError:
        """About a key of this section, or the section itself."""
        path = (*self.path, *keys)
        return JobError(self.file, line or self.line(*keys), ".".join(map(shown_key, path)), problem)

    def line(self, *keys: str) -> int | None:
        """Of the key, or of the nearest thing around it that is written down."""
        path = (*self.path, *keys)
        found = (self.places.get(path[:length]) for length in range(len(path), 0, -1))
        return next((place.line for place in found if place), None)

    @contextmanager
    def about(self, *names: str, key: str = "") -> Iterator[None]:
        """Errors of other rooms, under the key they name, or else `key`; `names` is how they begin."""
        try:
            yield
        except JobError:
            raise
        except CedrError as e:
            said = str(e)
            named = [(m.start(), k) for k in self.values if (m := re.search(rf"\b{re.escape(k)}(?==| is )", said))]
            about = min(named)[1] if named else key
            text = next((said.removeprefix(f"{name}: ") for name in names if said.startswith(f"{name}: ")), said)
            raise self.mistake(text, *([about] if about else [])) from None

    # --- keys --------------------------------------------------------------------------------------------------------

    def check_keys(self, known: Mapping[str, Kind]) -> None:
        """No other keys than these, each of its kind."""
        for key, value in self.values.items():
            if key not in known:
                raise self.unknown(key, known)
            kind = known[key]
            if value == "" or (isinstance(value, Secret) and not value):
                raise self.mistake(f"{key} is empty; write {key} = {kind.example}, or leave it out", key)
            if not kind.holds(value):
                raise self.mistake(f"{show(value)} is not {kind.words}; write {key} = {kind.example}", key)

    def unknown(self, key: str, known: Sequence[str] | Mapping[str, Any]) -> JobError:
        hint = did_you_mean(key, known) or f"; the keys here are {listed(known, 'and')}"
        return self.mistake(f"there is no such key{hint}", key)

    def one_of(self, *keys: str, what: str) -> str:
        """The one of these keys that is there."""
        there = [key for key in keys if key in self.values]
        if not there:
            raise self.mistake(f"{what} is missing; write {listed(keys)}")
        if len(there) > 1:
            raise self.mistake(f"{listed(there, 'and')} exclude each other; leave one of them", there[1])
        return there[0]

    def need(self, key: str, why: str, example: str) -> Any:
        if key not in self.values:
            raise self.mistake(f"{key} is missing, {why}; write {key} = {example}")
        return self.values[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    def pick(self, *keys: str) -> dict[str, Any]:
        """Those of these keys that are there."""
        return {key: self.values[key] for key in keys if key in self.values}

    def choice(self, key: str, allowed: Sequence[str]) -> str | None:
        value = self.values.get(key)
        if value is not None and value not in allowed:
            hint = did_you_mean(value, allowed)
            raise self.mistake(f"{show(value)} is not one of {listed(allowed)}{hint}", key)
        return None if value is None else str(value)

    def place(self, key: str) -> str:
        """A path of the file system, from the folder of the job file on."""
        path = str(self.values[key])
        if "\0" in path:
            raise self.mistake(f"{path!r} is no path; one cannot hold a zero character", key)
        try:
            return placed(self.folder, path)
        except RuntimeError:
            raise self.mistake(
                f"{show(path)}: there is no home folder of {path.partition('/')[0][1:]!r}", key
            ) from None

    def sub(self, key: str) -> "Section":
        return Section(self.file, self.folder, (*self.path, key), self.values[key], self.places)


def placed(folder: Path, path: str) -> str:
    """Relative paths begin at the job file; those of other file systems stay as they are."""
    if "://" in path:
        return path
    return str(folder / Path(path).expanduser())


def shown_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else f'"{key}"'


def show(value: Any) -> str:
    """A value as TOML writes it, cut when it is long."""
    if isinstance(value, bool):
        return str(value).lower()
    text = f'"{value}"' if isinstance(value, str | Secret) else "a table" if isinstance(value, dict) else str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
