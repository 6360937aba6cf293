"""The metrics of each operator, as a table.

lag        how far its progress is behind the highest start it has seen
late       its late rows: too late, or without a matching tuple
repaired   the share of its output rows that it adjusted later: adjusts out per insert out
"""

from collections.abc import Mapping, Sequence

import polars as pl

from cedr.operators.base import Operator
from cedr.operators.iterate.metrics import LoopMetrics
from cedr.plan.fragment import PhysicalStep
from cedr.temporal.time import INF, MIN

SCHEMA = {
    "step": pl.Int64,
    "operator": pl.String,
    "rows_in": pl.Int64,
    "rows_out": pl.Int64,
    "adjusts_in": pl.Int64,
    "adjusts_out": pl.Int64,
    "state_rows": pl.Int64,
    "state_bytes": pl.Int64,
    "cti_in": pl.Int64,
    "cti_out": pl.Int64,
    "lag": pl.Int64,
    "late": pl.Int64,
    "repaired": pl.Float64,
}

LOOP_SCHEMA = {"step": pl.Int64, "method": pl.String, **dict.fromkeys(LoopMetrics._fields[1:], pl.Int64)}


def loop_table(loops: Mapping[int, LoopMetrics]) -> pl.DataFrame:
    """The progress of the loops of a query, by the number of their step. `turns` is the former name of `iterations`."""
    table = pl.DataFrame([(number, *m) for number, m in loops.items()], schema=LOOP_SCHEMA, orient="row")
    return table.with_columns(turns="iterations")  # deprecated, for one more version


def metrics_table(steps: Sequence[PhysicalStep], operators: Sequence[Operator], highest: Sequence[int]) -> pl.DataFrame:
    rows = [metrics_row(*each) for each in zip(range(len(steps)), steps, operators, highest, strict=True)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def metrics_row(number: int, step: PhysicalStep, operator: Operator, highest: int) -> tuple[object, ...]:
    m = operator.metrics
    inserts = m.rows_out - m.adjusts_out
    return (
        number,
        step.name,
        m.rows_in,
        m.rows_out,
        m.adjusts_in,
        m.adjusts_out,
        m.state_rows,
        m.state_bytes,
        progress_or_none(m.cti_in),
        progress_or_none(m.cti_out),
        lag(highest, m.cti_out),
        sum(getattr(operator, "late_counts", {}).values()),
        m.adjusts_out / inserts if inserts else 0.0,
    )


def progress_or_none(cti: int) -> int | None:
    return None if cti == MIN else cti


def lag(highest: int, cti: int) -> int | None:
    """Unknown before the first CTI, zero after the last."""
    if cti == INF or highest == MIN:
        return 0
    return None if cti == MIN else max(highest - cti, 0)
