"""Java starts for the tests, about sixty times: without thorough compilation, and with classes from an archive.

Starting Spark and its first query take Java 12.9 s of a core, most of it to read, check and compile classes. With an
archive of what another Java has loaded it is 7.7 s. A run of all tests makes the archive during its first tests; Java
takes it when it is there, and does without it when it is not, or is of another Java or another Spark.

    python java_start.py FILE      makes the archive
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ARCHIVE = Path(__file__).parents[1] / ".java" / "spark.jsa"
OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java runs for seconds only, and several of them share the cores."""


def set_options(archive: Path = ARCHIVE) -> None:
    """For every Spark that this process and its children start. Without `-Xlog` Java complains of an archive that does
    not fit."""
    os.environ["SPARK_LAUNCHER_OPTS"] = OPTIONS
    os.environ["SPARK_SUBMIT_OPTS"] = f"{OPTIONS} -XX:SharedArchiveFile={archive} -Xlog:disable"


def make_in_background(archive: Path = ARCHIVE) -> None:
    """Unless there is one that is newer than Spark. It ends by itself, and only then the archive is there."""
    import pyspark

    if not archive.exists() or archive.stat().st_mtime < Path(pyspark.__file__).stat().st_mtime:
        silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.Popen([sys.executable, __file__, str(archive)], start_new_session=True, **silent)


def make(archive: Path) -> None:
    """Java writes down at its end what it has loaded; the queries are those of most tests, a batch and a stream."""
    from pyspark.sql import SparkSession

    archive.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        written = Path(folder, archive.name)
        os.environ["SPARK_SUBMIT_OPTS"] = f"{OPTIONS} -XX:ArchiveClassesAtExit={written} -Xlog:disable"
        spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        table = f"{folder}/table"
        spark.range(10).repartition(2).write.parquet(table)
        spark.read.parquet(table).groupBy("id").count().toArrow()
        stream = spark.readStream.schema("id long").parquet(table).repartition(2).writeStream.format("memory")
        stream.queryName("all").trigger(availableNow=True).start().awaitTermination()
        gateway = spark.sparkContext._gateway
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        os.replace(written, archive)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
