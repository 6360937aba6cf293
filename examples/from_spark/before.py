"""Hits per page and ten seconds with Spark's own operators: emitted when the watermark has passed, late rows dropped."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

HERE = Path(__file__).parent


def data_in_order(out: str) -> str:
    """Spark takes files by the time they were changed, which a checkout does not keep."""
    folder = Path(out) / "data"
    shutil.copytree(HERE / "data", folder)
    for second, file in enumerate(sorted(folder.iterdir())):
        os.utime(file, (second, second))
    return str(folder)


def main(out: str) -> None:
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    hits = (
        spark.readStream.schema("at timestamp, page string")
        .option("maxFilesPerTrigger", 1)
        .json(data_in_order(out))
        .withWatermark("at", "10 seconds")
        .groupBy(f.window("at", "10 seconds"), "page")
        .agg(f.count("*").alias("hits"))
    )
    running = (
        hits.writeStream.format("parquet")
        .outputMode("append")
        .option("path", f"{out}/hits")
        .option("checkpointLocation", f"{out}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    table = spark.read.parquet(f"{out}/hits").orderBy("window.start", "page")
    for row in table.collect():
        print(f"{row.window.start:%H:%M:%S} {row.page} {row.hits}")
    dropped = sum(s.numRowsDroppedByWatermark for p in running.recentProgress for s in p.stateOperators)
    print(f"dropped: {dropped}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
