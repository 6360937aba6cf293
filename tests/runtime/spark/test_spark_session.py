"""`cedr.spark_session` starts Java and Python workers as it says. Java starts once per process, so this has its own."""

import subprocess
import sys

SCRIPT = """
import os
import cedr
import pyarrow as pa
from cedr.runtime.spark.environment import ENVIRONMENT

def seen(batches):
    for _ in batches:
        yield pa.RecordBatch.from_pylist([{"name": n, "value": os.environ.get(n)} for n in ENVIRONMENT])

spark = cedr.spark_session("local[1]")
there = {row.name: row.value for row in spark.range(1).mapInArrow(seen, "name string, value string").collect()}
assert there == ENVIRONMENT, there
beans = spark._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
assert [bean.getName() for bean in beans] == ["Copy", "MarkSweepCompact"], [bean.getName() for bean in beans]
"""


def test_workers_keep_their_memory_and_java_stops_to_collect_garbage():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
