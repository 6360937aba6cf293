"""A job on Spark: one streaming query per sink, each with its own checkpoint below that of the job."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BooleanType, DataType, LongType, StringType, StructField, StructType, TimestampType

from cedr.job.job import Job
from cedr.job.reports import StepReport, lag_of, progress_of
from cedr.job.section import Section
from cedr.job.sinks import LOG, JobSink
from cedr.job.sources import KAFKA_COLUMNS, JobSource, line_columns
from cedr.job.stores import store, table_sink
from cedr.runtime.spark.driver.remote import share_settings
from cedr.runtime.spark.driver.session import spark_session
from cedr.runtime.spark.driver.streaming import CheckpointIdentity, RunningQuery
from cedr.secret import revealed
from cedr.sinks.spark_types import spark_schema
from cedr.sources.event_time import columns_read, time_columns
from cedr.storage import remote_settings
from cedr.storage.folder import checkpoint_folder
from cedr.temporal.errors import QueryError

PARSED, CORRUPT = "_cedr_parsed", "_cedr_corrupt"
KAFKA = 'add Spark\'s package for it: [spark] conf = {{ "spark.jars.packages" = "{}" }}'


def session(job: Job) -> SparkSession:
    """A Spark session whose log goes to a file in the checkpoint."""
    folder = Path(job.spark.checkpoint)
    if "://" not in job.spark.checkpoint:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise QueryError(f"the checkpoint {folder} cannot be created: {e.strerror}") from None
    log = folder / LOG if folder.is_dir() else None
    spark = spark_session(job.spark.master, f"cedr {job.file.name}", log=log, **revealed(job.spark.conf))
    share_settings(spark)
    return spark


def check_stores(job: Job) -> None:
    """Check that all tables can be written, before Spark starts and before any of them is created."""
    remote_settings.use(remote_settings.of_spark(revealed(job.spark.conf)))
    for sink in job.sinks.values():
        if sink.is_table:
            table_sink(sink).check_place()


class SparkAnswer:
    """One answer of a job, as a running query."""

    def __init__(
        self,
        job: Job,
        sink: JobSink,
        spark: SparkSession,
        once: bool,
        close: bool,
        shards: int | None = None,
        upgrade: bool = False,
    ) -> None:
        """`once` ends it after all available input, `close` then treats the input as complete. `shards`: their number,
        if not that of the job file. `upgrade`: accept what follows from a change of the query."""
        self.sink = sink
        self._passing = TemporaryDirectory(prefix="cedr-") if sink.place == "memory" else None
        travel_by_value(job)
        stream = job.stream(sink)
        settings = job.spark
        paced = None if settings.trigger is None else {"processingTime": f"{settings.trigger} milliseconds"}
        checkpoint = self._passing.name if self._passing else f"{settings.checkpoint}/{sink.name}"
        check_closing(checkpoint, close)
        data = {made.name: data_of(made, spark) for made in job.read_by(stream)}
        with refusals(sink.section, sink.place, spark):
            self.running: RunningQuery = stream.start(
                spark,
                data,
                sink=store(sink),
                checkpoint=checkpoint,
                trigger={"availableNow": True} if once else paced,
                close=close,
                late=sink.late,
                shards=shards or settings.shards,
                state_memory=settings.state_memory,
                name=f"{job.file.stem}/{sink.name}",
                upgrade=upgrade,
            )
        self._last = -1

    def clean_up(self) -> None:
        """Delete the checkpoint of an answer in memory; the answer does not outlive this process either."""
        if self._passing:
            self._passing.cleanup()

    def reports(self) -> Iterator[StepReport]:
        """The micro-batches since the last call."""
        for progress in self.running.progress:
            observed = progress.observedMetrics.get("cedr")
            if observed is None or progress.batchId <= self._last:
                continue
            self._last = progress.batchId
            kind = self.running.job.time_type
            yield StepReport(
                self.sink.name,
                progress.batchId,
                observed["rows_in"] or 0,
                observed["rows_out"] or 0,
                observed["adjusts_out"] or 0,
                observed["late"] or 0,
                observed["state_rows"] or 0,
                observed["state_bytes"] or 0,
                progress_of(observed["cti"], kind),
                lag_of(self.running.metrics(), kind),
                progress.durationMs.get("triggerExecution", 0) / 1000,
            )


def check_closing(checkpoint: str, close: bool) -> None:
    """A query that was closed at the end of its input cannot continue without an end, nor the other way round."""
    before = CheckpointIdentity.read(checkpoint_folder(checkpoint))
    if before is None or f"close: {close}" in before.plan:
        return
    fix = "run it without --once, or with --once --no-close" if close else "run it with --once"
    was = "without an end of input" if close else "that closes at the end of its input"
    raise QueryError(f"the checkpoint {checkpoint} belongs to a run {was}; {fix}, or use a new checkpoint")


def travel_by_value(job: Job) -> None:
    """Pickle functions in files next to the job or its function by value; executors cannot import them."""
    if "function" not in job.query:
        return
    where = str(job.query.get("function")).rpartition(":")[0]
    folders = {job.file.parent, (job.file.parent / where).parent}
    for module in list(sys.modules.values()):
        if (file := getattr(module, "__file__", None)) and Path(file).parent in folders:
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


# --- input ---------------------------------------------------------------------------------------------------------


def data_of(made: JobSource, spark: SparkSession) -> Any:
    """The input of `Stream.start`: files, or a streaming DataFrame."""
    if made.files is not None:
        return made.files
    with refusals(made.section, made.origin, spark):
        raw = spark.readStream.format(made.origin).options(**revealed(made.options)).load()
    return raw if made.origin == "rate" else from_lines(raw, made)


@contextmanager
def refusals(section: Section | None, key: str, spark: SparkSession) -> Iterator[None]:
    """Reports Spark's errors about a source or a sink under its key."""
    try:
        yield
    except AnalysisException as e:
        if section is None:
            raise
        problem = str(e).partition("\n")[0]
        if key == "kafka" and "find data source" in problem.lower():
            package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"
            problem = f"this Spark has no Kafka support; {KAFKA.format(package)}"
        raise section.mistake(problem, key) from None


def from_lines(raw: DataFrame, made: JobSource) -> DataFrame:
    """The columns in the JSON of each line or message, and Kafka's metadata columns.

    A line that cannot be parsed gets no start time, so that it goes to the late rows.
    """
    kinds = {field.name: field.dataType for field in spark_schema(made.stream.schema).fields}
    time = TimestampType() if made.times == "timestamp" else LongType()
    fields = [StructField(name, kinds.get(name) or time_or_text(made, name, time)) for name in line_columns(made)]
    schema = StructType([*fields, StructField(CORRUPT, StringType())])
    value = sf.from_json(sf.col("value").cast("string"), schema, {"columnNameOfCorruptRecord": CORRUPT})
    parsed = raw.select(value.alias(PARSED), *(kafka_columns() if made.origin == "kafka" else []))
    own = [name for name in KAFKA_COLUMNS if name in parsed.columns]
    assert made.source.vs is not None
    start = columns_read(made.source, made.source.vs)
    good = sf.col(PARSED).isNotNull() & sf.col(f"{PARSED}.{CORRUPT}").isNull()
    columns = {**{field.name: sf.col(f"{PARSED}.`{field.name}`") for field in fields}, **{n: sf.col(n) for n in own}}
    return parsed.select(*(sf.when(good, c).alias(n) if n in start else c.alias(n) for n, c in columns.items()))


def time_or_text(made: JobSource, name: str, time: DataType) -> DataType:
    """The type of a column that is not part of the payload."""
    source = made.source
    other: dict[str | None, DataType] = {source.counts: LongType(), source.punctuation: BooleanType()}
    if name not in time_columns(source) or (source.format and name != source.duration):
        return other.get(name, StringType())
    return LongType() if name == source.duration else time


def kafka_columns() -> list[Any]:
    texts = ("key", "topic")
    return [
        (sf.col(c).cast("string") if c in texts else sf.col(c)).alias(f"kafka_{c}")
        for c in (name.removeprefix("kafka_") for name in KAFKA_COLUMNS)
    ]
