"""`cedr doctor`: find problems of this machine's setup, and advise how to fix them.

checks.py   one function per check
java.py     find the installed Java versions
"""

from typing import Annotated

import typer


def doctor(
    json: Annotated[bool, typer.Option("--json", help="One JSON object per check.")] = False,
    spark: Annotated[bool, typer.Option(help="Also start Spark; this takes a while.")] = True,
) -> None:
    """Check Python, packages, Java, memory, disk, network and clock, and whether Spark starts.

    Exit code 0 if everything works, 1 if something is wrong.
    """
    from cedr.cli.as_json import as_json
    from cedr.cli.doctor.checks import CHECKS, SPARK

    good = True
    for check in (*CHECKS, *([SPARK] if spark else [])):
        found = check()
        good = good and found.state != "wrong"
        print(as_json(found.to_json()) if json else found, flush=True)
    raise typer.Exit(0 if good else 1)
