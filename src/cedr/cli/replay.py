"""`cedr replay CHANGELOG`: what was told, again, at any speed; to the screen, or into files for another job."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from cedr.cli.history import Recording


def replay(
    changelog: Recording,
    speed: Annotated[str, typer.Option(help="1x is as it was told, 10x ten times as fast, max at once.")] = "1x",
    by: Annotated[
        Literal["told", "vs"], typer.Option(help="The pace: of the time of day when it was told, or of sync times.")
    ] = "told",
    into: Annotated[
        Path | None, typer.Option(help="Write a file for each moment into this folder.", show_default=False)
    ] = None,
    form: Annotated[Literal["csv", "json", "parquet"], typer.Option("--as", help="How rows are written.")] = "csv",
) -> None:
    """Tell the rows of a changelog again, in their order and at their pace.

    They are rows that a source with vs, ve, ve_new and cti columns of these names reads.
    """
    import time

    from cedr.recording.changelog import check_form, read_changelog
    from cedr.recording.pace import moments, paced, write_moment
    from cedr.temporal.errors import QueryError

    fast = as_speed(speed)
    if into is None and form == "parquet":
        raise QueryError("--as parquet: rows on the screen are csv or json; or name a folder with --into")
    if into is not None:
        if form == "json":
            raise QueryError("--as json: files are csv or parquet")
        try:
            into.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise QueryError(f"--into {into}: cannot be made: {e.strerror}") from None
        if any(into.iterdir()):
            raise QueryError(f"--into {into}: the folder is not empty; name a new one")
    recorded = read_changelog(changelog)
    check_form(recorded.schema, form)
    pace = "vs" if fast == float("inf") and recorded.emitted_at is None else by
    for number, moment in enumerate(paced(moments(recorded, pace), fast, time.monotonic, time.sleep)):
        if into is not None:
            write_moment(moment, into, number, form)
        elif form == "csv":
            sys.stdout.write(moment.rows.write_csv(include_header=number == 0))
        else:
            sys.stdout.write(moment.rows.write_ndjson())
        sys.stdout.flush()


def as_speed(text: str) -> float:
    """How many times as fast."""
    from cedr.temporal.errors import QueryError

    if text == "max":
        return float("inf")
    try:
        found = float(text.removesuffix("x"))
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise QueryError(f"--speed {text}: write 1x, 10x, 0.5x or max")
    return found
