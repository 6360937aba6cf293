"""`cedr history CHANGELOG`: the contents of a recorded changelog as a table."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

Recording = Annotated[
    Path,
    typer.Argument(
        help="A changelog, or a table with vs and ve: a Parquet or CSV file, or a folder of such files.",
        show_default=False,
    ),
]
To = Annotated[str, typer.Option(help="Only the contents before this valid time.", show_default=False)]


def history(
    changelog: Recording,
    at: Annotated[
        str,
        typer.Option(help="As of this CEDR time: a number of changes, or a wall-clock time.", show_default=False),
    ] = "",
    to: To = "",
    tritemporal: Annotated[
        bool, typer.Option("--tritemporal", help="Every row ever emitted, with its CEDR times cs and ce.")
    ] = False,
    form: Annotated[Literal["table", "csv", "parquet"], typer.Option("--as", help="Output format.")] = "table",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file.", show_default=False)
    ] = None,
) -> None:
    """Show the canonical history of a changelog, or with --tritemporal every version of it."""
    import io

    from cedr.recording.changelog import check_form, read_changelog
    from cedr.recording.history import as_valid_time, canonical_table, known_at, tritemporal_table
    from cedr.runtime.why_waiting import aligned_columns as aligned
    from cedr.temporal.errors import QueryError
    from cedr.temporal.time import INF

    if tritemporal and to:
        raise QueryError("--to and --tritemporal cannot be combined; leave one of them out")
    if form == "parquet" and output is None and sys.stdout.isatty():
        raise QueryError("--as parquet: cannot be shown in a terminal; write to a file with --output")
    known = known_at(read_changelog(changelog), at or None)
    last = as_valid_time(to, known.time_type, "--to") if to else INF
    found = tritemporal_table(known) if tritemporal else canonical_table(known, last)
    check_form(found.schema, form)
    if form == "parquet":
        found.write_parquet(buffer := io.BytesIO())
        content = buffer.getvalue()
    else:
        text = f"{aligned(found)}\n" if form == "table" else found.write_csv()
        if output is None:
            sys.stdout.write(text)
            return
        content = text.encode()
    if output is None:
        sys.stdout.buffer.write(content)
        return
    try:
        output.write_bytes(content)
    except OSError as e:
        raise QueryError(f"--output {output}: cannot be written: {e.strerror}") from None
