r"""Commands that begin with a backslash: functions of the prompt and the arguments. `\help` lists them."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cedr.cli.prompt import example
from cedr.cli.prompt.loading import Loaded, load
from cedr.syntax.errors import did_you_mean
from cedr.temporal.errors import QueryError

if TYPE_CHECKING:
    from cedr.cli.prompt.loop import Prompt

Command = Callable[["Prompt", list[str]], None]
INTRODUCTION = """A statement ends with ; or an empty line, and runs at once:

  EVENT Name WHEN SEQUENCE(INSTALL x, SHUTDOWN y, 12 hours) WHERE {x.machine = y.machine};
  EVENT Name SELECT machine, COUNT(*) AS n FROM machines TUMBLING 1 hour GROUP BY machine;
  EVENT Name WHEN REGEX(INSTALL SHUTDOWN+ RESTART, 12 hours) OVER machines BY machine;

Later statements can use the name of an earlier one as an event type or a table.
"""


def demo(prompt: "Prompt", arguments: list[str]) -> None:
    r"""\demo: load a small example stream"""
    check_count("demo", arguments, 0)
    add(prompt, example.NAME, example.example())
    prompt.screen.print("  two rows are late and one is retracted; \\changes on shows the effect\nTry:\n", "dim")
    prompt.screen.print(example.QUERY)


def load_file(prompt: "Prompt", arguments: list[str]) -> None:
    r"""\load NAME FILE [vs=ts types=kind ve=… duration=… unit=ms …]: load a CSV, Parquet or JSON lines file as a
    stream; for times that are text add their format: format="%m/%d/%Y %H:%M"
    """
    settings = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    names = [argument for argument in arguments if "=" not in argument]
    if len(names) != 2:
        raise QueryError("\\load takes a name and a file, such as \\load machines reports.csv vs=ts types=kind")
    add(prompt, names[0], load(names[0], Path(names[1]).expanduser(), settings))


def add(prompt: "Prompt", name: str, loaded: Loaded) -> None:
    removed = prompt.session.load(name, loaded)
    prompt.screen.print(loaded.about)
    if removed:
        prompt.screen.print(f"  removed, because they used the previous {name}: {', '.join(removed)}", "yellow")


def streams(prompt: "Prompt", arguments: list[str]) -> None:
    r"""\streams: list the loaded streams and the statements"""
    check_count("streams", arguments, 0)
    session = prompt.session
    for loaded in session.loaded.values():
        prompt.screen.print(loaded.about)
    for name, stream in session.statements.items():
        prompt.screen.print(f"{name}: a statement; {', '.join(stream.columns)}")
    if not session.loaded:
        prompt.screen.print("nothing is loaded yet; \\demo loads an example, \\load NAME FILE a file")


def explain(prompt: "Prompt", arguments: list[str]) -> None:
    r"""\explain [NAME]: show the plan of a statement; without a name, of the last one"""
    check_count("explain", arguments, 1)
    statements = prompt.session.statements
    if not arguments and not statements:
        raise QueryError("\\explain: there is no statement yet")
    prompt.screen.print(prompt.session.find(arguments[0] if arguments else list(statements)[-1]).explain())


def changes(prompt: "Prompt", arguments: list[str]) -> None:
    r"""\changes on|off: show every change as the rows arrive one by one, or only the final answer"""
    if arguments not in (["on"], ["off"]):
        raise QueryError(f"\\changes takes on or off, not {' '.join(arguments) or 'nothing'}")
    prompt.row_by_row = arguments == ["on"]
    prompt.screen.print("showing every change" if prompt.row_by_row else "showing the final answer", "dim")


def rows(prompt: "Prompt", arguments: list[str]) -> None:
    r"""\rows N: show at most N rows of an answer"""
    if len(arguments) != 1 or not arguments[0].isdecimal() or not int(arguments[0]):
        raise QueryError("\\rows takes a number, such as \\rows 100")
    prompt.max_rows = int(arguments[0])


def show_help(prompt: "Prompt", arguments: list[str]) -> None:
    r"""\help: show this help"""
    check_count("help", arguments, 0)
    prompt.screen.print(INTRODUCTION)
    for command in COMMANDS.values():
        usage, _, what = (command.__doc__ or "").partition(": ")
        prompt.screen.print(f"  {usage}\n      {what}")


def leave(prompt: "Prompt", arguments: list[str]) -> None:
    r"""\quit: exit, like Ctrl-D"""
    check_count("quit", arguments, 0)
    prompt.done = True


COMMANDS: dict[str, Command] = {
    "demo": demo,
    "load": load_file,
    "streams": streams,
    "explain": explain,
    "changes": changes,
    "rows": rows,
    "help": show_help,
    "quit": leave,
}


def execute(prompt: "Prompt", line: str) -> None:
    """Run the command of a line."""
    try:
        name, *arguments = shlex.split(line.strip().removeprefix("\\").rstrip("; ")) or [""]
    except ValueError as e:
        raise QueryError(
            f"{line.strip()}: {e}".replace("No closing quotation", "the closing quotation mark is missing")
        ) from None
    if name not in COMMANDS:
        hint = did_you_mean(name, COMMANDS)
        raise QueryError(f"there is no command \\{name}{hint} (commands: {', '.join(COMMANDS)})")
    COMMANDS[name](prompt, arguments)


def check_count(name: str, arguments: list[str], maximum: int) -> None:
    if len(arguments) > maximum:
        allowed = "at most one argument" if maximum else "no arguments"
        raise QueryError(f"\\{name} takes {allowed}, not {' '.join(arguments)}")
