r"""`cedr prompt`: type a query, see its answer.

loading.py    files as streams
guessing.py   infer which columns are the times and the event types
example.py    a small example stream
session.py    loaded streams and statements; compiles and runs statements
commands.py   commands that begin with a backslash
screen.py     shows answers, changes and errors
editing.py    line editing: history and completion
loop.py       from lines to statements, typed or from a file
"""

from pathlib import Path
from typing import Annotated

import typer


def prompt(
    file: Annotated[Path | None, typer.Argument(help="Run this file of statements and commands, then exit.")] = None,
) -> None:
    r"""Query small data in the CEDR language. Try \demo, or \load NAME FILE, and \help.

    Statements piped to standard input are run like those of a file.
    """
    from cedr.cli.prompt.loop import start

    raise typer.Exit(start(file))
