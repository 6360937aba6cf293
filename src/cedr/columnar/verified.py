"""Frames that are read back: whether they have the expected columns."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from cedr.temporal.errors import StateError


def describe_schema(schema: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in schema.items())


def verify_frame(state: Any, schema: Mapping[str, Any], owner: str) -> None:
    """For parts whose snapshot is a frame of their rows."""
    if not isinstance(state, pl.DataFrame):
        raise StateError(f"the snapshot of {owner} is a {type(state).__name__}, and a frame is expected")
    if dict(state.schema) != dict(schema):
        raise StateError(
            f"the snapshot of {owner} has the columns {describe_schema(state.schema)}, and this query has "
            f"{describe_schema(schema)}; it was made by another query"
        )
