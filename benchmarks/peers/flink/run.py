"""Flink answers one question, question in SQL: `python run.py hopping FOLDER OUT`, by the contract of `peers/turn.py`.

Streaming mode, parallelism 2, a watermark of 5 s. The package brings no reader of Parquet, so the input is CSV without
a header, times as milliseconds: two files a stream, one for each source task, both in order of arrival. Answers are CSV
as well; where an answer changes as it goes, all changes are written, as JSON, and worked in afterwards. The seconds
are those between start and end of the job as Flink itself reports them.
"""

import json
import logging
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from changes import settled
from flink_query import FlinkQuery
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.version import __version__
from questions import QUESTIONS
from tables import TABLES

SETTINGS = {
    "parallelism.default": "2",
    "taskmanager.numberOfTaskSlots": "2",
    "taskmanager.memory.process.size": "4g",
    "taskmanager.memory.network.min": "256m",
    "taskmanager.memory.network.max": "256m",
    "table.local-time-zone": "UTC",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.size": "5000",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
}
"""Mini-batches and two phases are what Flink's own tuning guide advises for throughput."""


def ask(question: FlinkQuery, folder: Path, out: Path) -> float:
    """The seconds of the job."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in SETTINGS.items():
        tables.get_config().set(key, value)
    for name in question.streams:
        tables.execute_sql(TABLES[name].format(path=(folder / f"{name}.csv").absolute()))
    form = "debezium-json" if question.changes else "csv"
    tables.execute_sql(
        f"CREATE TABLE answer ({question.answer}) WITH "
        f"('connector' = 'filesystem', 'path' = '{out.absolute()}', 'format' = '{form}')"
    )
    for view in question.views:
        tables.execute_sql(view)
    job = tables.execute_sql(f"INSERT INTO answer {question.query}").get_job_client()
    return job.get_job_execution_result().result().get_net_runtime() / 1000


def read(question: FlinkQuery, out: Path) -> pa.Table:
    files = [path for path in sorted(out.iterdir()) if path.stat().st_size]
    if question.changes:
        return pa.Table.from_pylist(settled(files), schema=pa.schema(question.kinds.items()))
    kinds = pyarrow.csv.ConvertOptions(column_types=question.kinds)
    header = pyarrow.csv.ReadOptions(column_names=list(question.kinds))
    return pa.concat_tables(pyarrow.csv.read_csv(path, header, convert_options=kinds) for path in files)


def main(name: str, folder: str, out: str) -> None:
    logging.disable(logging.WARNING)
    question = QUESTIONS[name]
    seconds = [ask(question, Path(folder) / part, Path(out) / part) for part in ("warm", "in")][-1]
    pyarrow.parquet.write_table(read(question, Path(out) / "in"), Path(out) / "answer.parquet")
    print(json.dumps({"seconds": seconds, "version": f"Flink {__version__}"}))


if __name__ == "__main__":
    main(*sys.argv[1:])
