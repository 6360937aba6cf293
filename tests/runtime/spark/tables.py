"""Random streams as the tables a source on Spark reads, and micro-batches of them."""

import polars as pl
from hypothesis import strategies as st

from cedr.temporal import Adjust, Cti, Event, History, Insert, Row
from cedr.temporal.time import INF

TIMES = {"vs": pl.Int64, "ve": pl.Int64, "ve_new": pl.Int64, "cti": pl.Int64}
COLUMNS = {"vs": "vs", "ve": "ve", "ve_new": "ve_new", "cti": "cti"}
"""How a source is declared that reads such a table."""


def table_of(elements, schema, prefix: str = "") -> pl.DataFrame:
    """One row per element. The end of the stream has no row; closing is the end. `prefix`: of the columns of time."""
    rows = []
    for e in elements:
        match e:
            case Insert(vs, ve, p):
                rows.append(({"vs": vs, "ve": ve}, p))
            case Adjust(vs, ve, ve_new, p):
                rows.append(({"vs": vs, "ve": ve, "ve_new": ve_new}, p))
            case Cti(t) if t != INF:
                rows.append(({"cti": t}, {}))
    rows = [
        {**{prefix + name: t for name, t in times.items()}, **{name: p.get(name) for name in schema}}
        for times, p in rows
    ]
    return pl.DataFrame(rows, schema={**{prefix + name: kind for name, kind in TIMES.items()}, **schema})


@st.composite
def parts(draw, table: pl.DataFrame) -> list[pl.DataFrame]:
    """The rows of a micro-batch as Spark may give them to its tasks: cut anywhere, some tasks without rows."""
    cuts = sorted(draw(st.lists(st.integers(0, table.height), max_size=2)))
    return [table[a:b] for a, b in zip([0, *cuts], [*cuts, table.height], strict=True)]


def history_of(table: pl.DataFrame, schema) -> History:
    """A table of `vs`, `ve` and payload as a history; where these are columns of the payload, of `_vs` and `_ve`."""
    names = list(schema)
    start, end = ("_vs", "_ve") if "_vs" in table.columns else ("vs", "ve")
    rows = table.select(start, pl.col(end).fill_null(INF), *names).iter_rows()
    return History(Event(vs, ve, Row(dict(zip(names, values, strict=True)))) for vs, ve, *values in rows)
