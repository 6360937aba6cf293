"""A workload: one question, asked in cedr, asked in Spark's own operators, and answered by a polars batch program.

All three answers have the same columns once `cedr_answer` has brought cedr's table (vs, ve, payload) into the form of
the others. Columns in `exact` must be equal, the rest may differ by rounding.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from peers.parameters import DELAY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    import cedr

COLUMNS = "ts timestamp, k long, v double"
SCHEMA = {"k": pl.Int64, "v": pl.Float64}
WATERMARK = f"{DELAY} seconds"


@dataclass(frozen=True)
class Workload:
    name: str
    streams: tuple[str, ...]
    cedr_query: "Callable[[], cedr.Stream]"
    cedr_answer: Callable[[pl.DataFrame], pl.DataFrame]
    spark_query: "Callable[[Mapping[str, DataFrame]], DataFrame]"
    """Gets the streams with their watermarks."""
    batch: Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]
    exact: tuple[str, ...]
    bar: float
    """How many times the speed of Spark's own cedr has to reach."""
    state_store: str
    """Spark's faster one for this workload, as measured: hdfs (its default) or rocksdb."""
    reference: str
    """Figures from elsewhere."""
    unable: Mapping[str, str] = field(default_factory=dict)
    """Who of cedr's own environment has no way to ask this, and why: `{"spark": "..."}`."""
    key: str = "k"
    """The column of the answer that is FLUSH in what the flush led to."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Of each stream, as Spark names their types, if they are not COLUMNS."""
    close: bool = False
    """Some of the answer lasts for ever, so cedr needs the end of the stream."""


def source(name: str) -> "cedr.Stream":
    import cedr

    return cedr.source(name, SCHEMA, vs="ts", delay=WATERMARK)
