"""`cedr demo`: a query over late, disordered and corrected reports, on Spark on this machine, shown as it answers.

reports.py   what the machines report, and when it arrives
alerts.py    the query, and what becomes of its answer
levels.py    the query at one level of consistency, on Spark, with all it says and what that costs
screen.py    how it looks
verdict.py   the levels side by side
play.py      from the first line to the last
"""

from typing import Annotated

import typer


def demo(
    pace: Annotated[float, typer.Option(help="Seconds from one micro-batch to the next, at least.")] = 1.0,
) -> None:
    """Watch a query answer at once, and repair what a late or corrected report made wrong. Takes about a minute."""
    from cedr.cli.demo.play import play

    raise typer.Exit(play(pace))
