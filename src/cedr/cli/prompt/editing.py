"""Line editing: earlier statements with the arrow keys, completion with the tab key.

The history is kept in a file between sessions. A statement of several lines is one entry, on one line.
"""

import os
import re
import readline
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from cedr.cli.prompt.commands import COMMANDS
from cedr.cli.prompt.session import PromptSession
from cedr.plan.patterns.outputs import OF_VARIABLES
from cedr.syntax.parse import parser

REMEMBERED = 1_000
WORD_ENDS = " \t\n,;.(){}[]=<>+-*/'\""
KEYWORD = re.compile(r"(?:\(\?:)?([a-z|\[\]_-]+)\)?\\b")


def history_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "cedr" / "history"


@contextmanager
def editing(session: PromptSession) -> Iterator[str]:
    """Enable history and completion; yields the reason why the history cannot be saved, or an empty text."""
    path, problem = history_file(), ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        readline.read_history_file(path)
    except OSError as e:
        problem = f"the history is not saved: {e}"
    readline.set_history_length(REMEMBERED)
    readline.set_auto_history(False)
    readline.set_completer_delims(WORD_ENDS)
    readline.set_completer(Completer(session).complete)
    readline.parse_and_bind("tab: complete")
    try:
        yield problem
    finally:
        if not problem:
            readline.write_history_file(path)


def remember(text: str) -> None:
    """One entry per statement. Lines of a statement with a comment stay separate, as the comment ends with its line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for entry in lines if "--" in text else [" ".join(lines)]:
        newest = readline.get_current_history_length()
        if entry and (not newest or readline.get_history_item(newest) != entry):
            readline.add_history(entry)


class Completer:
    def __init__(self, session: PromptSession) -> None:
        self.session = session
        self.found: list[str] = []

    def complete(self, text: str, state: int) -> str | None:
        """The next completion of `text`; readline calls it until it returns None."""
        if state == 0:
            before = readline.get_line_buffer()[: readline.get_begidx()]
            self.found = sorted(name for name in self.completions(before) if name.lower().startswith(text.lower()))
        return self.found[state] if state < len(self.found) else None

    def completions(self, before: str) -> set[str]:
        """The possible completions after this text."""
        if before.endswith("."):
            return self.attributes() | set(OF_VARIABLES)
        if before.strip() == "" and not self.session.loaded:
            return {"EVENT", *(f"\\{name}" for name in COMMANDS)}
        names = {*self.session.loaded, *self.session.statements, *self.event_types()}
        return {*keywords(), *names, *self.attributes(), *(f"\\{name}" for name in COMMANDS if not before.strip())}

    def attributes(self) -> set[str]:
        streams = [*(loaded.stream for loaded in self.session.loaded.values()), *self.session.statements.values()]
        return {column for stream in streams for column in stream.columns}

    def event_types(self) -> set[str]:
        kinds = [kind for loaded in self.session.loaded.values() for kind in loaded.stream.schema.values()]
        return {name for kind in kinds if hasattr(kind, "categories") for name in kind.categories}


@cache
def keywords() -> set[str]:
    """The keywords of the language, from its grammar."""
    found = [KEYWORD.fullmatch(terminal.pattern.value) for terminal in parser().terminals]
    return {word.replace("[-_]", "-").upper() for match in found if match for word in match[1].split("|")}
