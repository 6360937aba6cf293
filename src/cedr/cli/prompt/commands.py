r"""What begins with a backslash. A command is a function of the prompt and its words; `\help` shows all of them."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cedr.cli.prompt import example
from cedr.cli.prompt.loading import Loaded, load
from cedr.language.errors import did_you_mean
from cedr.temporal.errors import QueryError

if TYPE_CHECKING:
    from cedr.cli.prompt.talk import Prompt

Command = Callable[["Prompt", list[str]], None]
INTRODUCTION = """A statement ends with ; or an empty line, and is answered at once:

  EVENT Name WHEN SEQUENCE(INSTALL x, SHUTDOWN y, 12 hours) WHERE {x.machine = y.machine};
  EVENT Name SELECT machine, COUNT(*) AS n FROM machines TUMBLING 1 hour GROUP BY machine;
  EVENT Name WHEN REGEX(INSTALL SHUTDOWN+ RESTART, 12 hours) OVER machines BY machine;

A name stays known: later statements can use it as an event type or a table.
"""


def demo(prompt: "Prompt", words: list[str]) -> None:
    r"""\demo: load a small stream to try things on"""
    takes("demo", words, 0)
    take_in(prompt, example.NAME, example.example())
    prompt.screen.say("  two rows are late and one is taken back; \\changes on shows what that leads to\nTry:\n", "dim")
    prompt.screen.say(example.QUERY)


def load_file(prompt: "Prompt", words: list[str]) -> None:
    r"""\load NAME FILE [vs=ts types=kind ve=… duration=… unit=ms …]: a CSV, Parquet or JSON lines file as a stream; for
    times that are text add their format: format="%m/%d/%Y %H:%M"
    """
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    names = [word for word in words if "=" not in word]
    if len(names) != 2:
        raise QueryError("\\load takes a name and a file, such as \\load machines reports.csv vs=ts types=kind")
    take_in(prompt, names[0], load(names[0], Path(names[1]).expanduser(), settings))


def take_in(prompt: "Prompt", name: str, loaded: Loaded) -> None:
    gone = prompt.session.load(name, loaded)
    prompt.screen.say(loaded.about)
    if gone:
        prompt.screen.say(f"  forgotten, as made before with another {name}: {', '.join(gone)}", "yellow")


def streams(prompt: "Prompt", words: list[str]) -> None:
    r"""\streams: what was loaded, and the statements made so far"""
    takes("streams", words, 0)
    session = prompt.session
    for loaded in session.loaded.values():
        prompt.screen.say(loaded.about)
    for name, stream in session.statements.items():
        prompt.screen.say(f"{name}: a statement; {', '.join(stream.columns)}")
    if not session.loaded:
        prompt.screen.say("nothing is loaded yet; \\demo loads an example, \\load NAME FILE a file")


def explain(prompt: "Prompt", words: list[str]) -> None:
    r"""\explain [NAME]: how a statement is worked out; without a name, the last one"""
    takes("explain", words, 1)
    statements = prompt.session.statements
    if not words and not statements:
        raise QueryError("\\explain: no statement was made yet")
    prompt.screen.say(prompt.session.find(words[0] if words else list(statements)[-1]).explain())


def changes(prompt: "Prompt", words: list[str]) -> None:
    r"""\changes on|off: show what was said as the rows came in, one by one, instead of what holds in the end"""
    if words not in (["on"], ["off"]):
        raise QueryError(f"\\changes takes on or off, not {' '.join(words) or 'nothing'}")
    prompt.row_by_row = words == ["on"]
    prompt.screen.say("every change is shown" if prompt.row_by_row else "what holds in the end is shown", "dim")


def rows(prompt: "Prompt", words: list[str]) -> None:
    r"""\rows N: show at most so many rows of an answer"""
    if len(words) != 1 or not words[0].isdecimal() or not int(words[0]):
        raise QueryError("\\rows takes a number, such as \\rows 100")
    prompt.most = int(words[0])


def show_help(prompt: "Prompt", words: list[str]) -> None:
    r"""\help: this"""
    takes("help", words, 0)
    prompt.screen.say(INTRODUCTION)
    for command in COMMANDS.values():
        usage, _, what = (command.__doc__ or "").partition(": ")
        prompt.screen.say(f"  {usage}\n      {what}")


def leave(prompt: "Prompt", words: list[str]) -> None:
    r"""\quit: end; Ctrl-D does the same"""
    takes("quit", words, 0)
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


def obey(prompt: "Prompt", line: str) -> None:
    """Run the command of a line."""
    try:
        name, *words = shlex.split(line.strip().removeprefix("\\").rstrip("; ")) or [""]
    except ValueError as e:
        raise QueryError(
            f"{line.strip()}: {e}".replace("No closing quotation", "a quotation mark is missing")
        ) from None
    if name not in COMMANDS:
        hint = did_you_mean(name, COMMANDS)
        raise QueryError(f"there is no command \\{name}{hint} (commands: {', '.join(COMMANDS)})")
    COMMANDS[name](prompt, words)


def takes(name: str, words: list[str], most: int) -> None:
    if len(words) > most:
        raise QueryError(f"\\{name} takes {'at most one word' if most else 'nothing after it'}, not {' '.join(words)}")
