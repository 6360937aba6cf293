"""`cedr diff ONE TWO`: compare two changelogs or tables for logical equivalence, and show the first difference."""

from typing import Annotated

import typer

from cedr.cli.history import Recording, To


def diff(
    one: Recording,
    two: Recording,
    to: To = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare the final contents of two changelogs or tables; the order of their changes does not matter.

    Exit code 0 if they are equivalent, 1 if not, 2 if they cannot be compared.
    """
    from cedr.cli.as_json import as_json
    from cedr.recording.changelog import read_changelog
    from cedr.recording.difference import difference
    from cedr.recording.history import as_valid_time
    from cedr.temporal.time import INF

    first, second = read_changelog(one), read_changelog(two)
    found = difference(first, second, as_valid_time(to, first.time_type, "--to") if to else INF)
    if json:
        rows = found.only[:1].to_dicts()
        content = {"equivalent": not found, "tuples": found.only.height, "first": rows[0] if rows else None}
        print(as_json(content))
    else:
        print(found)
    raise typer.Exit(1 if found else 0)
