"""Pathway answers one question: `python run.py hopping FOLDER OUT`, by the contract of `peers/turn.py`.

Two workers (threads), streaming: a connector in Python hands in the rows of the Parquet files in order of arrival and
commits every 10,000, which Pathway then works in together. Its readers of files stream only without an end, or take
all files as one batch, which would be another contest. Results are written as changes, by Pathway's own CSV writer, and
worked in afterwards.
"""

import json
import os
import sys
import time
from pathlib import Path

os.environ["PATHWAY_THREADS"] = "2"

import pathway as pw
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from asked import ANSWERS, MIXED, TIMES
from auctions import UNABLE
from pathway.internals.parse_graph import G
from rows import RENAMED, mixed, stream


def ask(name: str, folder: Path, out: Path) -> float:
    """The seconds from the start of the first read to the end of the run."""
    G.clear()
    out.mkdir()
    answer, streams = ANSWERS[name]
    first: list[float] = []
    if answer in MIXED:
        read = [mixed([folder / s for s in streams], first)]
    else:
        read = [stream(folder / s, first) for s in streams]
    pw.io.csv.write(answer(*read), out / "changes.csv")
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return time.perf_counter() - min(first)


def settled(path: Path) -> pa.Table:
    """Rows that came in and did not go out again; times, milliseconds so far, become microseconds."""
    changes = pyarrow.csv.read_csv(path).drop_columns("time")
    columns = [c for c in changes.column_names if c != "diff"]
    counted = changes.group_by(columns).aggregate([("diff", "sum")])
    left = counted.filter(pa.compute.greater(counted["diff_sum"], 0)).drop_columns("diff_sum")
    for column in set(columns) & TIMES:
        left = left.set_column(left.column_names.index(column), column, pa.compute.multiply(left[column], 1000))
    names = {new: old for old, new in RENAMED.items()}
    return left.rename_columns([names.get(name, name) for name in left.column_names])


def main(name: str, folder: str, out: str) -> None:
    if name in UNABLE:
        print(json.dumps({"unable": UNABLE[name]}))
        return
    seconds = [ask(name, Path(folder) / part, Path(out) / part) for part in ("warm", "in")][-1]
    pyarrow.parquet.write_table(settled(Path(out) / "in" / "changes.csv"), Path(out) / "answer.parquet")
    print(json.dumps({"seconds": seconds, "version": f"Pathway {pw.__version__}"}))


if __name__ == "__main__":
    main(*sys.argv[1:])
