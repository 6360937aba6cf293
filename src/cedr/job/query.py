"""`[query]`: a text in the CEDR language, a file with one, or a function that builds streams from the sources."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cedr.job.function import first_on_path, function_at, users_code
from cedr.job.section import TEXT, Section
from cedr.job.sources import JobSource
from cedr.language.query import queries
from cedr.stream import Stream
from cedr.syntax.errors import LanguageError, listed
from cedr.temporal.errors import CedrError

KEYS = {"text": TEXT, "file": TEXT, "function": TEXT}
Streams = dict[str, Stream]


def streams_of(section: Section, sources: Mapping[str, JobSource]) -> Streams:
    """The streams that the query defines, by name; the last is the answer."""
    section.check_keys(KEYS)
    kind = section.one_of(*KEYS, what="the query")
    if kind == "function":
        return of_function(section, sources)
    return of_text(section, section.get("text"), sources) if kind == "text" else of_file(section, sources)


# --- text ----------------------------------------------------------------------------------------------------------


def of_text(section: Section, text: str, sources: Mapping[str, JobSource]) -> Streams:
    try:
        return compiled(text, sources)
    except LanguageError as e:
        place = section.places.get((*section.path, "text"))
        line = None if place is None else place.value + e.line - 1
        raise section.mistake(f"column {e.column}: {below(e)}", "text", line=line) from None
    except CedrError as e:
        raise section.mistake(str(e), "text") from None


def of_file(section: Section, sources: Mapping[str, JobSource]) -> Streams:
    path = Path(section.place("file"))
    try:
        text = path.read_text("utf-8-sig")
    except OSError as e:
        raise section.mistake(f"{path} cannot be read: {e.strerror}", "file") from None
    except UnicodeDecodeError:
        raise section.mistake(f"{path} is not UTF-8 text", "file") from None
    try:
        return compiled(text, sources)
    except CedrError as e:
        raise section.mistake(f"{path.name}, {e}" if isinstance(e, LanguageError) else str(e), "file") from None


def compiled(text: str, sources: Mapping[str, JobSource]) -> Streams:
    return queries(text, *(source.stream for source in sources.values()))


def below(error: LanguageError) -> str:
    """The problem, and the line it is in with its caret."""
    return "\n".join([error.problem, *str(error).splitlines()[1:]])


# --- function ------------------------------------------------------------------------------------------------------


def of_function(section: Section, sources: Mapping[str, JobSource]) -> Streams:
    place = str(section.get("function"))
    with section.about(f"function {place!r}", key="function"):
        function = function_at(place, "function", section.folder)
        with users_code(f"function {place!r}"), first_on_path(section.folder):
            made = function(**arguments(section, function, sources))
    streams = made if isinstance(made, dict) else {section.path[-1]: made}
    for name, stream in streams.items():
        if not isinstance(stream, Stream):
            what = f"{name!r} is a {type(stream).__name__}" if isinstance(made, dict) else f"a {type(made).__name__}"
            raise section.mistake(f"{place} returns {what}; it must return a stream or a dict of streams", "function")
        if not isinstance(name, str) or not name:
            raise section.mistake(f"{place} returns a stream under {name!r}; names must be strings", "function")
    if not streams:
        raise section.mistake(f"{place} returns no stream", "function")
    return streams


def arguments(section: Section, function: Callable[..., Any], sources: Mapping[str, JobSource]) -> Streams:
    """The sources that the function takes, by the names of its parameters."""
    parameters = inspect.signature(function).parameters.values()
    given = {name: source.stream for name, source in sources.items()}
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return given
    for p in parameters:
        if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL):
            raise section.mistake(
                f"sources are passed by name, which {p.name!r} does not allow; write it without * and /", "function"
            )
        if p.name not in given and p.default is p.empty:
            raise section.mistake(
                f"the function requires a source {p.name!r}; the sources are {listed(given, 'and')}", "function"
            )
    return {p.name: given[p.name] for p in parameters if p.name in given}
