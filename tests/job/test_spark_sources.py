"""What Spark's own sources give a job: lines of JSON, messages of Kafka, the rate source."""

import json
from datetime import UTC, datetime

import pytest
from cli.calling import call
from job.files import JOB, put

from cedr.job.job import read
from cedr.job.on_spark import data_of, from_lines

KAFKA = """\
kafka = { kafka.bootstrap.servers = "localhost:9092", subscribe = "readings" }
columns = { machine = "str", load = "float", kafka_topic = "str" }
vs = "kafka_timestamp"
ve = "end"
partition = "kafka_partition"
delay = 5
"""
SOURCE = JOB[JOB.index("files =") : JOB.index("\n[consistency]")]


def test_messages_of_kafka(spark, tmp_path):
    (made,) = read(put(tmp_path, JOB.replace(SOURCE, KAFKA))).sources.values()
    assert made.options == {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "readings"}
    at = datetime(2026, 3, 1, 10, tzinfo=UTC)
    message = {"machine": "web1", "load": 0.5, "end": "2026-03-01T11:00:00Z", "more": 1}
    schema = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"
    rows = [
        (None, text.encode(), "readings", 3, n, at) for n, text in enumerate([json.dumps(message), '{"machine": "web'])
    ]
    read_rows = from_lines(spark.createDataFrame(rows, schema), made)
    assert read_rows.columns[:3] == ["machine", "load", "end"]
    first, second = (row.asDict() for row in read_rows.collect())
    assert (first["machine"], first["load"]) == ("web1", 0.5)
    assert (first["kafka_topic"], first["kafka_partition"]) == ("readings", 3)
    assert first["kafka_timestamp"].timestamp() == at.timestamp()
    assert first["end"].timestamp() == at.timestamp() + 3600
    assert (second["kafka_timestamp"], second["kafka_offset"]) == (None, 1), "without a start it is late"


def test_lines_of_a_socket_with_numbers_as_times(spark, tmp_path):
    lines = JOB.replace('files = "data/*.csv"', 'socket = { host = "localhost", port = 9999 }\ntimes = "number"')
    (made,) = read(put(tmp_path, lines)).sources.values()
    (row,) = from_lines(
        spark.createDataFrame([('{"machine": "web1", "load": 1, "start": 3, "end": 4}',)], "value string"), made
    ).collect()
    assert row.asDict() == {"machine": "web1", "load": 1.0, "start": 3, "end": 4}


def test_the_rate_source_has_its_columns(spark, tmp_path):
    rate = 'rate = { rowsPerSecond = 5 }\ncolumns = { value = "int" }\nvs = "timestamp"\n'
    job = JOB.replace(SOURCE, rate).replace("r.machine, r.load", "r.value").replace("r.load", "r.value")
    (made,) = read(put(tmp_path, job)).sources.values()
    rows = data_of(made, spark)
    assert rows.isStreaming
    assert rows.columns == ["timestamp", "value"]


@pytest.mark.parametrize("where", ["source", "sink"])
def test_a_spark_without_kafka_reports_what_to_add(spark, tmp_path, monkeypatch, capsys, where):
    sink = 'kafka = { "kafka.bootstrap.servers" = "localhost:9092", topic = "hot" }'
    job = JOB.replace(SOURCE, KAFKA) if where == "source" else JOB.replace('parquet = "out/hot"', sink)
    monkeypatch.chdir(tmp_path)
    put(tmp_path, job)
    done = call(monkeypatch, capsys, "run", "job.toml", "--once")
    place = "11: sources.readings" if where == "source" else "21: sinks.hot"
    assert done.code == 2
    assert done.err.startswith(
        f"error: job.toml:{place}.kafka: this Spark has no Kafka support; add Spark's package for it: "
    )
