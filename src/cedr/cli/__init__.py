"""The command line: one file per command, put together here.

Only typer is imported up front. A command imports what it needs when it runs, so that `./cedr --help` is quick.
"""

import io
import sys
from typing import Annotated

import typer

from cedr import CedrError, __version__
from cedr.cli.bench import bench
from cedr.cli.check import check
from cedr.cli.demo import demo
from cedr.cli.diff import diff
from cedr.cli.docs import docs
from cedr.cli.doctor import doctor
from cedr.cli.explain import explain
from cedr.cli.explore import explore
from cedr.cli.history import history
from cedr.cli.pack import pack
from cedr.cli.plot import plot
from cedr.cli.prompt import prompt
from cedr.cli.replay import replay
from cedr.cli.replicas import app as replicas
from cedr.cli.run import run
from cedr.cli.state import state
from cedr.cli.test import test
from cedr.secret import hidden

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
app.command()(demo)
app.command()(prompt)
app.command()(run)
app.command()(check)
app.command()(explain)
app.command()(history)
app.command()(diff)
app.command()(replay)
app.command()(plot)
app.command()(state)
app.command()(doctor)
app.command()(bench)
app.command()(docs)
app.command()(pack)
app.add_typer(replicas, name="replicas")
app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})(test)
app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})(explore)


def show_version(requested: bool) -> None:
    if requested:
        print(f"cedr {__version__}")
        raise typer.Exit


@app.callback()
def cedr(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=show_version, is_eager=True)
    ] = False,
) -> None:
    """Consistent streaming through time, in Python, on Spark."""


def main() -> None:
    """Run the command line. A user error ends it with one message and exit code 2, without a traceback.

    Characters that the output cannot encode, such as ∞ in ASCII, are escaped.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="cedr")
    except CedrError as error:
        print(f"error: {hidden(str(error))}", file=sys.stderr)
        sys.exit(2)
