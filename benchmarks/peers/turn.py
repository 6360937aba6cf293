"""One of the systems that live in cedr's own environment answers one question, once to warm up and once for the clock.

    python -m peers.turn local hopping FOLDER OUT

FOLDER holds `warm`, a part of the events, and `in`, all of them. The same process works through both, one after the
other, so that nobody's compiler, class loader or first start is on the clock. The answer is in OUT/answer.parquet; the
last line printed is JSON: the seconds from the first input read to the last result written. Programs of other
environments (`flink/run.py` and so on) keep to the same contract.
"""

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import polars as pl

import cedr
from peers import data
from peers.questions import QUESTIONS
from peers.side import Outcome, read_cedr, read_spark, run_cedr, run_spark
from peers.workload import Workload

ANSWER = "answer.parquet"


def polars(workload: Workload, events: Path, out: Path) -> float:
    """All events at once, as one table: what no streaming system can do, and so the limit."""
    start = time.perf_counter()
    workload.batch(data.read(events, workload.streams)).write_parquet(out / ANSWER)
    return time.perf_counter() - start


def local(workload: Workload, events: Path, out: Path) -> float:
    """Files come in one after the other; middle consistency, the runtime of this process."""
    query = workload.cedr_query().with_consistency("middle")
    start = time.perf_counter()
    files = zip(*(data.files(events / stream) for stream in workload.streams), strict=True)
    arriving = (dict(zip(workload.streams, map(pl.read_parquet, row), strict=True)) for row in files)
    result = query.run(arriving)
    result.table().write_parquet(out / "table.parquet")
    seconds = time.perf_counter() - start
    if late := result.late().height:
        raise RuntimeError(f"cedr put {late:,} rows aside as late; everyone must use all events")
    workload.cedr_answer(pl.read_parquet(out / "table.parquet")).write_parquet(out / ANSWER)
    return seconds


def cedr_on_spark(workload: Workload, events: Path, out: Path) -> float:
    outcome = run_cedr(workload, events, out)
    workload.cedr_answer(read_cedr(out)).write_parquet(out / ANSWER)
    return elapsed(outcome)


def spark(workload: Workload, events: Path, out: Path) -> float:
    outcome = run_spark(workload, events, out, workload.state_store)
    read_spark(out).write_parquet(out / ANSWER)
    return elapsed(outcome)


def elapsed(outcome: Outcome) -> float:
    """From the start of the first micro-batch to the end of the last, in seconds."""
    first, last = outcome["batches"][0], outcome["batches"][-1]
    return float(last["start"] + last["seconds"] - first["start"])


SYSTEMS: dict[str, Callable[[Workload, Path, Path], float]] = {
    "polars": polars,
    "local": local,
    "cedr-spark": cedr_on_spark,
    "spark": spark,
}


PACKAGES = {"polars": "polars", "local": "cedr", "cedr-spark": "pyspark", "spark": "pyspark"}


def turn(system: str, name: str, folder: Path, out: Path) -> Outcome:
    seconds = 0.0
    for part in ("warm", "in"):
        (out / part).mkdir(parents=True)
        seconds = SYSTEMS[system](QUESTIONS[name].workload, folder / part, out / part)
    (out / "in" / ANSWER).rename(out / ANSWER)
    return {"seconds": seconds, "version": version_of(PACKAGES[system])}


def version_of(package: str) -> str:
    """The sources of cedr are used where they lie, so nothing was installed that could be asked."""
    return f"{package} {cedr.__version__ if package == 'cedr' else version(package)}"


if __name__ == "__main__":
    system, name, folder, out = sys.argv[1:]
    print(json.dumps(turn(system, name, Path(folder), Path(out))))
