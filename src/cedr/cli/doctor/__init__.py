"""`cedr doctor`: what is wrong with this machine's set-up, and what to do about it.

checks.py   one function for each thing that is looked at
java.py     which Java there is
"""

from typing import Annotated

import typer


def doctor(
    json: Annotated[bool, typer.Option("--json", help="One JSON object per check.")] = False,
    spark: Annotated[bool, typer.Option(help="Start Spark, too; that takes a while.")] = True,
) -> None:
    """Look at Python, packages, Java, memory, disk, network and clock, and whether Spark starts.

    Exit code 0 if all is well, 1 if something is wrong.
    """
    from cedr.cli.as_json import as_json
    from cedr.cli.doctor.checks import CHECKS, SPARK

    good = True
    for check in (*CHECKS, *([SPARK] if spark else [])):
        found = check()
        good = good and found.state != "wrong"
        print(as_json(found.to_json()) if json else found, flush=True)
    raise typer.Exit(0 if good else 1)
