"""`cedr.spark_session` starts Java and Python workers as it says. Java starts once per process, so this has its own."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cedr.runtime.spark.session import folder_of_sockets, room_for_objects

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
folder = spark.conf.get("spark.python.unix.domain.socket.dir")
assert any(name.endswith(".sock") for name in os.listdir(folder)), os.listdir(folder)
if not os.fork():
    raise SystemExit  # the end of a copy is not the end
os.wait()
assert spark.range(3).toArrow().num_rows == 3
print(folder)
"""


def test_workers_keep_their_memory_and_java_stops_to_collect_garbage():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not Path(done.stdout.split()[-1]).exists()


@pytest.mark.parametrize(
    ("memory", "room"), [("2g", 384), ("1GB", 256), ("600m", 150), ("400", 100), ("1t", 384), ("2", 0), ("much", 0)]
)
def test_new_objects_have_a_quarter_of_the_memory_at_the_most(memory, room):
    assert room_for_objects(memory) == (f" -Xms{2 * room}m -XX:NewSize={room}m" if room else "")


@pytest.mark.parametrize("length", [44, 45, 46, 80])
def test_sockets_have_a_folder_of_their_own_with_a_short_path(monkeypatch, length):
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        usual = Path(place, "t" * (length - len(place) - 1))
        usual.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(usual))
        folder = folder_of_sockets()
        assert len(folder) <= 60
        assert (Path(folder).parent == usual) == (length <= 45)
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        os.rmdir(folder)
