r"""`cedr prompt`: write a query, see its answer.

loading.py    files as streams
guessing.py   which columns are the times and the types
example.py    a small stream to try things on
session.py    what was loaded and said so far; understands statements and runs them
commands.py   what begins with a backslash
screen.py     answers, changes and mistakes as they are drawn
editing.py    the line that is typed: history and completion
talk.py       from lines to statements, typed or from a file
"""

from pathlib import Path
from typing import Annotated

import typer


def prompt(
    file: Annotated[Path | None, typer.Argument(help="Run this file of statements and commands, and end.")] = None,
) -> None:
    r"""Ask small data questions in the CEDR language. Try \demo, or \load NAME FILE, and \help.

    Statements that come through a pipe are run as those of a file.
    """
    from cedr.cli.prompt.talk import talk

    raise typer.Exit(talk(file))
