"""A Spark session with cedr's settings, on this machine by default."""

import atexit
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from cedr.runtime.spark.driver.environment import ENVIRONMENT
from cedr.secret import Secret, is_secret_name
from cedr.storage.private import PREFIX, note_owner, remove_left_over, temporary

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.session.timeZone": "UTC",
    **{f"spark.executorEnv.{name}": value for name, value in ENVIRONMENT.items()},
    "spark.driver.memory": "2g",
    "spark.log.level": "ERROR",
    "spark.task.maxFailures": "4",
}

UNSEEN = {"spark.ui.liveUpdate.period": "-1", "spark.sql.ui.explainMode": "simple"}
"""Without the user interface, live updates and plans in long form are not needed."""

SOCKETS = "spark.python.unix.domain.socket.enabled"
FOLDER_OF_SOCKETS = "spark.python.unix.domain.socket.dir"
OPTIONS = "spark.driver.extraJavaOptions"
ON_ONE_MACHINE = {
    OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m",
    SOCKETS: "true",
}
"""Java only moves packets, so thorough compilation costs more than it gains (decision 10). So does its default garbage
collector, which runs concurrently to keep the pauses of large heaps short (decision 26). It has room for the objects of
a few micro-batches, so that it need not run in each of them (decision 27). Java and Python communicate through sockets
in a folder: a network socket delays small messages for up to 40 ms, and a micro-batch has several of them (decision
27)."""


LOOPBACK = "127.0.0.1"
LISTENING = {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
"""With all of Spark on this machine, no other machine has to reach it."""
PYTHON = "spark.pyspark.python"
AUTHENTICATE, AUTH_SECRET = "spark.authenticate", "spark.authenticate.secret"


def spark_session(
    master: str = "local[*]", name: str = "cedr", *, log: str | os.PathLike[str] | None = None, **settings: Any
) -> SparkSession:
    """A session for cedr: `spark_session()` on this machine, `spark_session("spark://host:7077")` on a cluster.

    Settings are Spark's, with `__` for the dots: `spark_session(spark__driver__memory="8g")`. cedr works with any
    session; this one reads larger batches at once, gives each Python worker one thread and lets it keep its memory
    between batches, and logs little. On one machine Java also compiles its code only lightly and uses the serial
    garbage collector; for heavy SQL of your own set `spark__driver__extraJavaOptions=""`. The output of Java and Spark
    goes to the terminal, or is appended to the file `log`.

    On one machine Spark listens on the loopback address only, and everywhere its processes authenticate each other
    (`spark.authenticate`). The one exception is a standalone cluster, `spark://`, which needs a shared secret: give it
    as `spark__authenticate__secret`. Your own settings take precedence.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local-cluster"):
        os.environ.setdefault("SPARK_HOME", spark_home())
    conf = SparkConf().setMaster(master).setAppName(name)
    here = ON_ONE_MACHINE if master.startswith("local[") or master == "local" else {}
    given = {
        key.replace("__", "."): value.reveal() if isinstance(value, Secret) else str(value)
        for key, value in settings.items()
    }
    chosen = {**SETTINGS, **here, **closed_to_others(master, given), **given}
    if here and OPTIONS not in given:
        chosen[OPTIONS] += room_for_objects(chosen["spark.driver.memory"])
    if chosen["spark.ui.enabled"].lower() == "false":
        chosen = {**UNSEEN, **chosen}
    if here and chosen[SOCKETS].lower() == "true" and SparkContext._active_spark_context is None:
        chosen = {FOLDER_OF_SOCKETS: folder_of_sockets(), **chosen}
    conf.setAll(list(chosen.items()))
    if SparkContext._gateway is None:  # Java starts once per process
        start_java(conf, log, LOOPBACK if on_this_machine(master) else None)
    session = SparkSession.builder.config(conf=conf).getOrCreate()
    if PYTHON in given:  # PySpark itself reads only the environment, unless spark-submit has started it
        session.sparkContext.pythonExec = given[PYTHON]
    return session


def on_this_machine(master: str) -> bool:
    return re.fullmatch(r"local(\[.*\]|-cluster\[.*\])?", master) is not None


def closed_to_others(master: str, given: Mapping[str, str]) -> dict[str, str]:
    """Settings that keep others out. On one machine, YARN and Kubernetes, Spark generates the secret itself."""
    chosen = dict(LISTENING) if on_this_machine(master) else {}
    if not master.startswith("spark://") or AUTH_SECRET in given:
        chosen[AUTHENTICATE] = "true"
    if master.startswith("local-cluster"):
        chosen[AUTH_SECRET] = secrets.token_hex(32)
    return chosen


def start_java(conf: SparkConf, log: str | os.PathLike[str] | None, address: str | None) -> None:
    """Java writes output before it reads any setting, so its output is redirected from outside. Its command line is
    public, so secret settings are passed later. Its web pages, and the processes of a cluster on this machine, listen
    on the address in the environment."""
    public = SparkConf(loadDefaults=False).setAll([(k, v) for k, v in conf.getAll() if not is_secret_name(k)])
    with ExitStack() as opened:
        opened.enter_context(environment_with({"SPARK_LOCAL_IP": address} if address else {}))
        output = opened.enter_context(open(log, "ab")) if log is not None else None
        gateway = launch_gateway(public, {"stdout": output, "stderr": output} if output else None)
    SparkContext(conf=conf, gateway=gateway)


@contextmanager
def environment_with(names: Mapping[str, str]) -> Iterator[None]:
    """Sets variables that are not set yet, for the processes that are started meanwhile."""
    added = {name: value for name, value in names.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def room_for_objects(memory: str) -> str:
    """Java's options, given its maximum memory: much room for new objects, but at most a quarter of it."""
    size = re.fullmatch(r"(\d+)([mgt]?)b?", memory.strip().lower())
    room = min(384, int(size[1]) * {"": 1, "m": 1, "g": 1024, "t": 1024**2}[size[2]] // 4) if size else 0
    return f" -Xms{2 * room}m -XX:NewSize={room}m" if room else ""


def folder_of_sockets() -> str:
    """A private folder, because sockets have no password; Spark leaves some behind. A forked process that ends does not
    remove the folder. If we are killed, the next driver removes it."""
    remove_left_over()
    folder, ours = tempfile.mkdtemp(prefix=PREFIX, dir=temporary()), os.getpid()
    note_owner(Path(folder), ours)

    def remove() -> None:
        if os.getpid() == ours:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def spark_home() -> str:
    import pyspark

    return os.path.dirname(pyspark.__file__)
