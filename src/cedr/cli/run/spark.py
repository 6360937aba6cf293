"""Runs a job on Spark: all its answers in parallel, until they finish, one fails, or the user stops them."""

import logging
import warnings
from contextlib import suppress
from threading import Event

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from cedr.cli.run.local import late_text
from cedr.cli.run.stopping import stopping
from cedr.cli.run.view import View
from cedr.job.job import Job
from cedr.job.on_spark import SparkAnswer, check_stores, session
from cedr.temporal.errors import CedrError, CedrWarning

NEW_LINE = "\n"
EVERY = 0.2
"""Seconds between polls."""
JAVA_IS_GONE = (Py4JError, ConnectionError)
"""The Java process was stopped, or killed because the machine ran out of memory."""


def run_on_spark(
    job: Job, view: View, once: bool, close: bool, shards: int | None = None, upgrade: bool = False
) -> bool:
    answers: list[SparkAnswer] = []
    gone = False
    logging.getLogger("cedr").addHandler(logging.NullHandler())  # the view shows what a sink waits for
    with stopping() as stop:
        try:
            check_stores(job)
            spark = session(job)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CedrWarning)  # the command has printed them
                for sink in job.sinks.values():
                    answers.append(SparkAnswer(job, sink, spark, once, once and close, shards, upgrade))
                    view.message("started", f"{sink.name}: {sink.statement} to {sink}", sink=sink.name)
                good = watched(answers, view, stop)
            if stop.is_set():
                view.message("stopped", "stopping after the current micro-batch")
        except (PySparkException, *JAVA_IS_GONE) as e:
            gone = isinstance(e, JAVA_IS_GONE)
            good = stop.is_set()  # a signal to the process group also stops Java, maybe in the middle of a batch
            if good:
                view.message("stopped", "stopped; the next run repeats the interrupted micro-batch")
            else:
                problem = "its Java process has ended" if gone else str(e).strip().partition(NEW_LINE)[0]
                view.message("failed", f"error: Spark: {problem}")
        finally:
            for answer in answers:
                with suppress(*JAVA_IS_GONE):
                    if answer.running.is_active:
                        answer.running.stop()
    for answer in answers:
        if good and not gone:
            with suppress(*(JAVA_IS_GONE if stop.is_set() else ())):
                show_end(answer, view)
        answer.clean_up()
    return good


def watched(answers: list[SparkAnswer], view: View, stop: Event) -> bool:
    """True when all have finished or the user has stopped them, False when one has failed."""
    going = list(answers)
    troubles: dict[str, str | None] = {}
    while going and not stop.is_set():
        for answer in list(going):
            for report in answer.reports():
                view.step(report)
            troubles[answer.sink.name] = show_trouble(answer, troubles.get(answer.sink.name), view)
            if not answer.running.is_active:
                going.remove(answer)
                try:
                    answer.running.await_termination()
                except CedrError as e:
                    view.message("failed", f"error: {answer.sink.name}: {e}", sink=answer.sink.name)
                    return False
        stop.wait(EVERY)
    return True


def show_trouble(answer: SparkAnswer, before: str | None, view: View) -> str | None:
    """Report what a sink waits for, when that is new, and when it no longer waits, if its query still runs."""
    trouble, name = answer.running.trouble, answer.sink.name
    if trouble is not None and trouble != before:
        view.message("waiting", f"{name}: {trouble}", sink=name)
    elif trouble is None and before is not None and answer.running.is_active:
        view.message("reached", f"{name}: the sink is reachable again", sink=name)
    return trouble


def show_end(answer: SparkAnswer, view: View) -> None:
    """Report the last steps, late rows, and the answer if it has no other sink."""
    sink, running = answer.sink, answer.running
    for report in answer.reports():
        view.step(report)
    if (late := running.late()).height:
        view.message("late", late_text(sink, late, running.job.late), sink=sink.name, rows=late.height)
    if sink.place == "memory":
        view.show(sink.name, running.table())
    else:
        view.message("ended", f"{sink.name}: finished; the answer is in {sink}", sink=sink.name)
