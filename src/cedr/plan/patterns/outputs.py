"""What OUTPUT can name: the header fields of matches and variables, and attributes of events."""

from collections.abc import Sequence

import polars as pl

LINEAGE = pl.List(pl.Struct({"type": pl.String, "id": pl.Int64, "vs": pl.Int64}))
HEADER: dict[str, pl.DataType] = {
    "Vs": pl.Int64(),
    "Ve": pl.Int64(),
    "Rt": pl.Int64(),
    "Id": pl.Int64(),
    "cbt": LINEAGE,
}
"""The header of a match."""
OF_VARIABLES = ("Vs", "Rt", "Id")
"""The header fields of a variable."""

Outputs = Sequence[tuple[str, pl.Expr]]


def shown_attributes(outputs: Outputs) -> dict[str, list[str]]:
    """The attributes of the event that the output shows unchanged, with their names there."""
    found: dict[str, list[str]] = {}
    for name, expression in outputs:
        plain = expression.meta.undo_aliases()
        attribute = plain.meta.output_name().partition(".")[2] if plain.meta.is_column() else ""
        if attribute and attribute not in ("Vs", "Rt"):
            found.setdefault(attribute, []).append(name)
    return found
