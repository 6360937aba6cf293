"""Checks the executors of a cluster before a query starts there: cedr and its packages, the checkpoint, the clocks.

A small job runs `probe.look` once on each executor, and here; the answers are compared. Without it, an executor without
cedr fails with the traceback of an import in the middle of a task, and one with another version or another folder of
the same name may fail much later, or write state that nobody finds (decision 60). Executors that join later are not
checked.
"""

import os
import re
import shutil
import time
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

from py4j.protocol import Py4JError
from pyspark import cloudpickle
from pyspark.core.rdd import RDD
from pyspark.errors import PySparkException
from pyspark.serializers import AutoBatchedSerializer, CPickleSerializer
from pyspark.sql import SparkSession

from cedr import __version__
from cedr.runtime.spark.driver import probe
from cedr.runtime.spark.driver.placement import has_executors
from cedr.runtime.spark.driver.probe import CEDR, CHECKED_FILE, PACKAGES, PYTHON
from cedr.secret import without_credentials
from cedr.storage import remote_settings
from cedr.storage.folder import Folder
from cedr.temporal.errors import CedrWarning, QueryError

Found = dict[str, Any]
"""What `probe.look` has found."""
MUST_AGREE = (CEDR, "polars")
"""Plans are sent as Python objects, and contain expressions of polars."""
CLOCK_SECONDS = 2.0
"""Clocks that a network keeps in step differ by far less."""

NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"[^:]*: (?:error=\d+, )?([^\n]*)')
OTHER_PYTHON = re.compile(r"different version: (\S+) than that in driver:? (\S+?),")

checked: set[tuple[str, str, str]] = set()
"""Application, checkpoint and executor."""


def check_executors(spark: SparkSession, checkpoint: Folder | None = None) -> None:
    """Raises an error that names an executor and the remedy, or warns of its clock. On one machine there is nothing to
    check: `local[*]` uses the driver's own Python."""
    if not has_executors(spark):
        return
    place = checkpoint.place if checkpoint is not None else ""
    application = str(spark.sparkContext.applicationId)
    executors = executors_of(spark)
    new = {(application, place, executor) for executor in executors}
    if new and new <= checked:
        return
    began = time.time()
    settings = remote_settings.current().values
    found = look_everywhere(spark, executors, place or None, settings)
    ended = time.time()
    here = probe.look(place or None, __version__, settings)
    if (problem := first_problem(here, found, without_credentials(place))) is not None:
        raise QueryError(problem)
    for text in warnings_of(here, found, began, ended):
        warnings.warn(text, CedrWarning, stacklevel=4)
    checked.update(new)


def check_python_of_driver(spark: SparkSession) -> None:
    """Spark starts the executors' Python on the driver, too, to list the files of `cedr.files`."""
    program = str(spark.sparkContext.pythonExec)
    if shutil.which(program) is None:
        reject(
            f"the driver starts {program}, too, to list files, and finds none from {os.getcwd()}. Unpack the "
            "archive of spark.archives there (mkdir environment && tar -xzf FILE -C environment), or set "
            "spark.pyspark.python to a path that the driver and the executors have"
        )


# --- the job ----------------------------------------------------------------------------------------------------------


def executors_of(spark: SparkSession) -> dict[str, str]:
    """Numbers and hosts of the executors that are there."""
    context: Any = spark.sparkContext
    found, known = {}, context._jsc.sc().taskScheduler().executorIdToHost().iterator()
    while known.hasNext():
        executor = known.next()
        found[str(executor._1())] = str(executor._2())
    return dict(sorted(found.items()))


def look_everywhere(
    spark: SparkSession, executors: dict[str, str], place: str | None, settings: dict[str, str]
) -> list[Found]:
    """One task for each executor, which prefers to run there. If none has come yet, Spark waits for the first."""
    context: Any = spark.sparkContext
    to_seq, tuple_of = context._jvm.PythonUtils.toSeq, context._jvm.scala.Tuple2
    preferred = [[f"executor_{host}_{number}"] for number, host in executors.items()] or [[]]
    places = [tuple_of(task, to_seq(where)) for task, where in enumerate(preferred)]
    numbers = context._jsc.sc().makeRDD(to_seq(places), context._jsc.emptyRDD().classTag())
    pickled = context._jvm.SerDeUtil.javaToPython(numbers.toJavaRDD())
    tasks: RDD[int] = RDD(pickled, context, AutoBatchedSerializer(CPickleSerializer()))
    version, look = __version__, probe.look
    cloudpickle.register_pickle_by_value(probe)
    try:
        job = tasks.mapPartitions(call_of(look, place, version, settings))
        return list(job.collect())
    except (Py4JError, PySparkException) as e:
        explain(str(e))
        raise
    finally:
        cloudpickle.unregister_pickle_by_value(probe)


def call_of(look: Any, place: str | None, version: str, settings: dict[str, str]) -> Any:
    """A function that Python's pickle can send to a Python without cedr: it belongs to no module."""
    scope: dict[str, Any] = {"look": look, "place": place, "version": version, "__name__": "__main__"}
    scope["settings"] = settings
    exec("def run(_):\n    return [look(place, version, settings)]", scope)
    return scope["run"]


def explain(text: str) -> None:
    """Raise an error of ours for the two failures that prevent Python from starting."""
    if (program := NO_PROGRAM.search(text)) is not None:
        reject(
            f"an executor cannot start its Python, {program[1]}: {program[2]}. Set spark.pyspark.python to one that "
            f"executors have; {PACK}"
        )
    if (versions := OTHER_PYTHON.search(text)) is not None:
        reject(f"an executor runs Python {versions[1]} and the driver Python {versions[2]}; {PACK}")


def reject(text: str) -> NoReturn:
    raise QueryError(text) from None


# --- the answers ------------------------------------------------------------------------------------------------------

PACK = "`./cedr pack` makes an archive with the driver's Python and packages for them (docs/deployment)"


def first_problem(here: Found, found: Sequence[Found], place: str) -> str | None:
    """The first that would make a query fail, or its state unusable."""
    for executor in found:
        for package in (CEDR, *PACKAGES):
            if executor[package] is None:
                missing = f"{name_of(executor)} has no {package}, the driver has {here[package]}"
                return f"{missing}; {remedy(package, here)}"
        for package in MUST_AGREE:
            if executor[package] != here[package]:
                return (
                    f"{name_of(executor)} has {package} {executor[package]}, the driver has {here[package]}; they must "
                    f"be the same: {remedy(package, here)}"
                )
        if "content" in executor and (problem := checkpoint_problem(here, executor)) is not None:
            return (
                f"{name_of(executor)} cannot use the checkpoint {place}: {problem}. A checkpoint on a cluster must be "
                "on storage that the driver and all executors reach under the same name"
            )
    return None


def name_of(executor: Found) -> str:
    return f"the executor on {executor['host']} (folder {executor['folder']}, Python {executor['executable']})"


def remedy(package: str, here: Found) -> str:
    return f"install it there (pip install {package}=={here[package]}), or use a packed environment: {PACK}"


def checkpoint_problem(here: Found, executor: Found) -> str | None:
    if executor["trouble"] is not None:
        return without_credentials(str(executor["trouble"]))
    if executor["content"] is None:
        return f"{CHECKED_FILE}, which the driver has written, is not there"
    if executor["content"] != here["content"]:
        return f"its {CHECKED_FILE} is not the one that the driver has written, so it is another folder"
    return None


def warnings_of(here: Found, found: Sequence[Found], began: float, ended: float) -> list[str]:
    """What does not stop a query. `began` and `ended` enclose the job by the driver's clock."""
    texts = []
    for executor in found:
        others = [
            f"{package} {executor[package]} instead of {here[package]}"
            for package in (PYTHON, *PACKAGES)
            if executor[package] != here[package]
        ]
        if others:
            texts.append(f"{name_of(executor)} has {', '.join(others)} of the driver; {PACK}")
        ahead = max(executor["at"] - ended, 0.0) - max(began - executor["at"], 0.0)
        if abs(ahead) > CLOCK_SECONDS:
            direction = "ahead of" if ahead > 0 else "behind"
            texts.append(
                f"the clock of {name_of(executor)} is at least {abs(ahead):.0f} s {direction} the driver's. "
                "Results are not affected, because `idle` and `max_ahead` use the driver's clock. Times in logs are, "
                "and object stores and Kerberos reject requests if clocks differ by minutes: synchronize them (NTP)"
            )
    return list(dict.fromkeys(texts))
