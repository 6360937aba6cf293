"""`cedr demo`: a query over late, disordered and corrected reports, on Spark on this machine, shown live.

reports.py   what the machines report, and when it arrives
alerts.py    the query, and how its result changes
levels.py    the query at one level of consistency, on Spark, with everything it emits and what that costs
screen.py    the display
verdict.py   comparison of the levels
play.py      the demo from start to end
"""

from typing import Annotated

import typer


def demo(
    pace: Annotated[float, typer.Option(help="Minimum number of seconds between micro-batches.")] = 1.0,
) -> None:
    """Watch a query answer at once and repair its answer when reports are late or corrected. Takes about a minute."""
    from cedr.cli.demo.play import play

    raise typer.Exit(play(pace))
