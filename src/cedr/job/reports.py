"""Metrics of a run after each step: rows in and out, progress, state."""

from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from cedr.runtime.why_waiting import Sentences
from cedr.sources.user_times import TimeType
from cedr.temporal.time import MIN


@dataclass(frozen=True)
class StepReport:
    """One step of one answer: a micro-batch on Spark, a chunk in this process.

    progress   the time before which the answer is final, formatted; None before the first promise
    lag        how far progress is behind the highest start seen, formatted; None if unknown
    """

    sink: str
    batch: int
    rows_in: int
    rows_out: int
    repairs: int
    late: int
    state_rows: int
    state_bytes: int
    progress: str | None
    lag: str | None
    seconds: float

    @property
    def rate(self) -> float:
        return self.rows_in / self.seconds if self.seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "rate": round(self.rate, 1)}

    def __str__(self) -> str:
        parts = [
            f"{self.sink}: batch {self.batch}",
            f"{self.rows_in:,} rows in {self.seconds:.2f} s ({self.rate:,.0f}/s)",
            f"{self.rows_out:,} out",
            f"{self.repairs:,} repairs",
            f"{self.late:,} late",
            f"state {self.state_rows:,} rows",
        ]
        parts += [f"final up to {self.progress}"] if self.progress is not None else []
        return ", ".join(parts + ([f"lag {self.lag}"] if self.lag is not None else []))


def progress_of(cti: int | None, kind: TimeType) -> str | None:
    return None if cti is None or cti == MIN else Sentences(kind).time(cti)


def lag_of(metrics: pl.DataFrame, kind: TimeType) -> str | None:
    """The longest lag of all operators; timestamps are rounded to milliseconds, as one instant does not matter."""
    if "lag" not in metrics.columns or (longest := metrics["lag"].max()) is None:
        return None
    assert isinstance(longest, int)
    return Sentences(kind).length(round(longest, -3) if isinstance(kind, pl.Datetime) else longest)
