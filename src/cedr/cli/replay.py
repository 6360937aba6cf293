"""`cedr replay CHANGELOG`: replay a recorded changelog at any speed, to the screen or to files for another job."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from cedr.cli.history import Recording


def replay(
    changelog: Recording,
    speed: Annotated[
        str, typer.Option(help="1x is the recorded speed, 10x ten times as fast, max without pauses.")
    ] = "1x",
    by: Annotated[
        Literal["emitted", "vs", "told"],
        typer.Option(help="Pace by the wall-clock time of emission, or by sync time (vs). 'told' is deprecated."),
    ] = "emitted",
    into: Annotated[
        Path | None, typer.Option(help="Write one file per moment to this folder.", show_default=False)
    ] = None,
    form: Annotated[Literal["csv", "json", "parquet"], typer.Option("--as", help="Output format.")] = "csv",
) -> None:
    """Replay the rows of a changelog in their order and at their pace.

    The output can be read by a source whose vs, ve, ve_new and cti columns have these names.
    """
    import time

    from cedr.recording.changelog import check_form, read_changelog
    from cedr.recording.pace import By, moments, paced, write_moment
    from cedr.temporal.errors import QueryError

    if by == "told":
        print(
            "warning: --by told is now --by emitted; the old name will be removed in the next version", file=sys.stderr
        )
    fast = as_speed(speed)
    if into is None and form == "parquet":
        raise QueryError("--as parquet: only csv and json can be printed; use --into to write Parquet files")
    if into is not None:
        if form == "json":
            raise QueryError("--as json: files can be csv or parquet")
        try:
            into.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise QueryError(f"--into {into}: cannot be created: {e.strerror}") from None
        if any(into.iterdir()):
            raise QueryError(f"--into {into}: the folder is not empty; choose a new one")
    recorded = read_changelog(changelog)
    check_form(recorded.schema, form)
    pace: By = "vs" if by == "vs" or (fast == float("inf") and recorded.emitted_at is None) else "emitted"
    for number, moment in enumerate(paced(moments(recorded, pace), fast, time.monotonic, time.sleep)):
        if into is not None:
            write_moment(moment, into, number, form)
        elif form == "csv":
            sys.stdout.write(moment.rows.write_csv(include_header=number == 0))
        else:
            sys.stdout.write(moment.rows.write_ndjson())
        sys.stdout.flush()


def as_speed(text: str) -> float:
    """The speed as a factor."""
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
