"""`cedr.spark_session` starts Java and Python workers as documented. Java starts once per process: one file."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cedr.runtime.spark.driver.session import (
    AUTH_SECRET,
    AUTHENTICATE,
    LISTENING,
    closed_to_others,
    folder_of_sockets,
    room_for_objects,
)

CLOSED_TO_OTHERS = """
import os
from pathlib import Path
from cedr.storage.processes import is_java, parent_of

def is_below(process):
    while process not in (None, 0, os.getpid()):
        process = parent_of(process)
    return process == os.getpid()

processes = [p for p in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_java(p) and is_below(p)]
inodes = set()
for process in processes:
    assert "only mine" not in Path(f"/proc/{process}/cmdline").read_text()
    for file in Path(f"/proc/{process}/fd").iterdir():
        try:
            inodes.add(os.readlink(file))
        except OSError:
            continue
LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
listening = []
for table in ("tcp", "tcp6"):
    for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
            listening.append(fields[1])
assert len(listening) >= 3, listening
assert all(address.split(":")[0] in LOOPBACK for address in listening), listening
"""

SCRIPT = (
    """
import os
import cedr
import pyarrow as pa
from cedr.runtime.spark.driver.environment import ENVIRONMENT

def seen(batches):
    for _ in batches:
        yield pa.RecordBatch.from_pylist([{"name": n, "value": os.environ.get(n)} for n in ENVIRONMENT])

spark = cedr.spark_session("local[1]", spark__ui__enabled=True, spark__hadoop__fs__s3a__secret__key="only mine")
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
assert spark.conf.get("spark.authenticate") == "true"
assert spark.sparkContext.getConf().get("spark.hadoop.fs.s3a.secret.key") == "only mine"
"""
    + CLOSED_TO_OTHERS
    + """
print(folder)
"""
)

ON_A_CLUSTER = (
    """
import cedr
spark = cedr.spark_session("local-cluster[1,1,1024]", spark__driver__memory="1g")
assert spark.range(3).repartition(2).toArrow().num_rows == 3
secret = spark.sparkContext.getConf().get("spark.authenticate.secret")
assert len(secret) == 64
"""
    + CLOSED_TO_OTHERS
    + """
assert len(processes) == 2, processes
for process in processes:
    assert secret not in Path(f"/proc/{process}/cmdline").read_text()
"""
)


def test_workers_keep_their_memory_and_java_stops_to_collect_garbage():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not Path(done.stdout.split()[-1]).exists()


def test_a_cluster_on_this_machine_is_closed_to_others():
    done = subprocess.run([sys.executable, "-c", ON_A_CLUSTER], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize(
    ("master", "given", "chosen"),
    [
        ("local", {}, {**LISTENING, AUTHENTICATE: "true"}),
        ("local[*,3]", {}, {**LISTENING, AUTHENTICATE: "true"}),
        ("yarn", {}, {AUTHENTICATE: "true"}),
        ("k8s://https://host:6443", {}, {AUTHENTICATE: "true"}),
        ("spark://host:7077", {}, {}),
        ("spark://host:7077", {AUTH_SECRET: "x"}, {AUTHENTICATE: "true"}),
    ],
)
def test_others_are_kept_out_where_spark_can(master, given, chosen):
    """A cluster of Spark's own refuses drivers whose secret it does not know."""
    assert closed_to_others(master, given) == chosen


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
        shutil.rmtree(folder)
