"""The prompt's main loop: lines become statements and commands, which run one after the other.

A typed statement ends with a semicolon or an empty line, and an error affects only that statement. In a file or a pipe
all lines between two commands are compiled together, and the first error, with its line in the file, ends the run.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from polars.exceptions import PolarsError

from cedr.cli.prompt.commands import execute
from cedr.cli.prompt.screen import PromptScreen
from cedr.cli.prompt.session import PromptSession
from cedr.plan.schema import first_line
from cedr.stream import Stream
from cedr.temporal.errors import CedrError, QueryError

FIRST, NEXT = "cedr> ", " ...> "
MAX_ROWS = 20
WELCOME = "Queries in the CEDR language. \\demo loads an example, \\help shows all commands, \\quit or Ctrl-D exits."
QUOTED = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)


class Prompt:
    def __init__(self, screen: PromptScreen) -> None:
        self.screen, self.session = screen, PromptSession()
        self.row_by_row, self.max_rows, self.done = False, MAX_ROWS, False

    def handle(self, text: str) -> None:
        """Run a command, or statements."""
        if is_command(text):
            execute(self, text)
        elif QUOTED.sub("", text).strip(" \t\n;"):
            for name, stream in self.session.compile(text).items():
                self.show(name, stream)

    def show(self, name: str, stream: Stream) -> None:
        try:
            result = self.session.answer(stream, self.row_by_row)
        except PolarsError as e:
            raise QueryError(f"{name}: {first_line(e)}") from None
        if self.row_by_row:
            self.screen.draw(name, result.changelog(), self.max_rows, "change")
        else:
            self.screen.draw(name, result.table(), self.max_rows)
        if (late := result.late()).height:
            self.screen.draw(f"{name}, late rows that are not in the answer", late, self.max_rows)


def start(file: Path | None) -> int:
    """Run a file, standard input or an interactive prompt; returns the exit code."""
    prompt = Prompt(PromptScreen())
    if file is not None:
        run(prompt, read(file))
    elif not sys.stdin.isatty():
        run(prompt, sys.stdin.read())
    else:
        interact(prompt)
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
        prompt.handle(part)


def parts(text: str) -> Iterator[str]:
    """Commands and the text between them, each preceded by as many empty lines as there are lines before it."""
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


def interact(prompt: Prompt) -> None:
    from cedr.cli.prompt.editing import editing, remember

    prompt.screen.print(WELCOME)
    with editing(prompt.session) as problem:
        if problem:
            prompt.screen.print(problem, "yellow")
        while not prompt.done:
            try:
                text = read_statement()
                for part in parts(text):
                    remember(part)
                run(prompt, text)
            except EOFError:
                prompt.screen.print("")
                return
            except KeyboardInterrupt:
                prompt.screen.print("")
            except CedrError as e:
                prompt.screen.error(str(e))


def read_statement() -> str:
    """Lines until a statement is complete. The end of input also completes it."""
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
    """Nothing after the last command, or a final semicolon outside of quotes and comments."""
    *_, last = parts(text)
    bare = QUOTED.sub("", last).strip()
    return not bare or (bare.endswith(";") and not any(sign in bare for sign in ("'", '"', "/*")))


def is_command(line: str) -> bool:
    return line.lstrip().startswith("\\")
