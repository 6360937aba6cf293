"""The conversation: lines become statements and commands, each is answered, and a mistake ends only itself.

Typed, a statement ends with a semicolon or an empty line. In a file, or what comes through a pipe, all lines between
two commands are understood together, and the first mistake ends it, with its line in the file.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from polars.exceptions import PolarsError

from cedr.cli.prompt.commands import obey
from cedr.cli.prompt.screen import Screen
from cedr.cli.prompt.session import Session
from cedr.plan.schema import first_line
from cedr.stream import Stream
from cedr.temporal.errors import CedrError, QueryError

FIRST, NEXT = "cedr> ", " ...> "
MOST_ROWS = 20
WELCOME = "Questions in the CEDR language. \\demo loads an example, \\help says more, \\quit or Ctrl-D ends."
QUOTED = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)


class Prompt:
    def __init__(self, screen: Screen) -> None:
        self.screen, self.session = screen, Session()
        self.row_by_row, self.most, self.done = False, MOST_ROWS, False

    def hear(self, text: str) -> None:
        """A command, or statements."""
        if is_command(text):
            obey(self, text)
        elif QUOTED.sub("", text).strip(" \t\n;"):
            for name, stream in self.session.understand(text).items():
                self.show(name, stream)

    def show(self, name: str, stream: Stream) -> None:
        try:
            result = self.session.answer(stream, self.row_by_row)
        except PolarsError as e:
            raise QueryError(f"{name}: {first_line(e)}") from None
        if self.row_by_row:
            self.screen.draw(name, result.changelog(), self.most, "change")
        else:
            self.screen.draw(name, result.table(), self.most)
        if (late := result.late()).height:
            self.screen.draw(f"{name}, put aside and not in the answer", late, self.most)


def talk(file: Path | None) -> int:
    """The exit code."""
    prompt = Prompt(Screen())
    if file is not None:
        run(prompt, read(file))
    elif not sys.stdin.isatty():
        run(prompt, sys.stdin.read())
    else:
        converse(prompt)
    return 0


# --- a file --------------------------------------------------------------------------------------------------------


def read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise QueryError(f"{file} cannot be read: {getattr(e, 'strerror', None) or e}") from None


def run(prompt: Prompt, text: str) -> None:
    for part in parts(text):
        if prompt.done:
            return
        prompt.hear(part)


def parts(text: str) -> Iterator[str]:
    """Commands and what is between them, each after as many empty lines as there are lines before it."""
    waiting: list[str] = []
    before = 0
    for number, line in enumerate(text.splitlines()):
        if is_command(line):
            yield "\n" * before + "\n".join(waiting)
            yield line
            waiting, before = [], number + 1
        else:
            waiting.append(line)
    yield "\n" * before + "\n".join(waiting)


# --- at a terminal -------------------------------------------------------------------------------------------------


def converse(prompt: Prompt) -> None:
    from cedr.cli.prompt.editing import editing, remember

    prompt.screen.say(WELCOME)
    with editing(prompt.session) as problem:
        if problem:
            prompt.screen.say(problem, "yellow")
        while not prompt.done:
            try:
                text = ask()
                for part in parts(text):
                    remember(part)
                run(prompt, text)
            except EOFError:
                prompt.screen.say("")
                return
            except KeyboardInterrupt:
                prompt.screen.say("")
            except CedrError as e:
                prompt.screen.mistake(str(e))


def ask() -> str:
    """Lines until a statement is complete. What was typed before the end of all input counts as complete."""
    text = input(FIRST)
    while not is_complete(text):
        try:
            line = input(NEXT)
        except EOFError:
            return text
        text += f"\n{line}"
        if not line.strip():
            break
    return text


def is_complete(text: str) -> bool:
    """Nothing after the last command, or a semicolon at the end that is in no text and no comment."""
    *_, last = parts(text)
    bare = QUOTED.sub("", last).strip()
    return not bare or (bare.endswith(";") and not any(sign in bare for sign in ("'", '"', "/*")))


def is_command(line: str) -> bool:
    return line.lstrip().startswith("\\")
