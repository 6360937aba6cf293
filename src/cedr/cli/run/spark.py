"""A job on Spark: all its answers side by side, until they end, one fails, or somebody stops them."""

import logging
import warnings
from contextlib import suppress
from threading import Event

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from cedr.cli.run.local import late_words
from cedr.cli.run.stopping import stopping
from cedr.cli.run.view import View
from cedr.job.job import Job
from cedr.job.on_spark import SparkAnswer, check_stores, session
from cedr.temporal.errors import CedrError, CedrWarning

NEW_LINE = "\n"
EVERY = 0.2
"""Seconds between two looks."""
JAVA_IS_GONE = (Py4JError, ConnectionError)
"""Somebody has ended it, or the machine had no memory left for it."""


def run_on_spark(job: Job, view: View, once: bool, close: bool) -> bool:
    answers: list[SparkAnswer] = []
    gone = False
    logging.getLogger("cedr").addHandler(logging.NullHandler())  # the view shows what waits
    with stopping() as stop:
        try:
            check_stores(job)
            spark = session(job)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CedrWarning)  # the command has told them
                for sink in job.sinks.values():
                    answers.append(SparkAnswer(job, sink, spark, once, once and close))
                    view.say("started", f"{sink.name}: {sink.statement} to {sink}", sink=sink.name)
                good = watched(answers, view, stop)
            if stop.is_set():
                view.say("stopped", "stopping after the micro-batch at hand")
        except (PySparkException, *JAVA_IS_GONE) as e:
            gone = isinstance(e, JAVA_IS_GONE)
            good = stop.is_set()  # a signal to all processes of the job ends Java, too, maybe in the middle of a batch
            if good:
                view.say("stopped", "stopped; what the micro-batch at hand would have told comes with the next run")
            else:
                said = "its Java process has ended" if gone else str(e).strip().partition(NEW_LINE)[0]
                view.say("failed", f"error: Spark: {said}")
        finally:
            for answer in answers:
                with suppress(*JAVA_IS_GONE):
                    if answer.running.is_active:
                        answer.running.stop()
    for answer in answers:
        if good and not gone:
            with suppress(*(JAVA_IS_GONE if stop.is_set() else ())):
                tell(answer, view)
        answer.let_go()
    return good


def watched(answers: list[SparkAnswer], view: View, stop: Event) -> bool:
    """Until all have ended or somebody wants to stop, True; or one has failed."""
    going = list(answers)
    troubles: dict[str, str | None] = {}
    while going and not stop.is_set():
        for answer in list(going):
            for report in answer.reports():
                view.step(report)
            troubles[answer.sink.name] = tell_trouble(answer, troubles.get(answer.sink.name), view)
            if not answer.running.is_active:
                going.remove(answer)
                try:
                    answer.running.await_termination()
                except CedrError as e:
                    view.say("failed", f"error: {answer.sink.name}: {e}", sink=answer.sink.name)
                    return False
        stop.wait(EVERY)
    return True


def tell_trouble(answer: SparkAnswer, before: str | None, view: View) -> str | None:
    """What a sink waits for, when that is new; and that it no longer does, if its query still runs."""
    trouble, name = answer.running.trouble, answer.sink.name
    if trouble is not None and trouble != before:
        view.say("waiting", f"{name}: {trouble}", sink=name)
    elif trouble is None and before is not None and answer.running.is_active:
        view.say("reached", f"{name}: its store can be reached again", sink=name)
    return trouble


def tell(answer: SparkAnswer, view: View) -> None:
    """The last steps, what could not be used, and the answer if it has no other place."""
    sink, running = answer.sink, answer.running
    for report in answer.reports():
        view.step(report)
    if (late := running.late()).height:
        view.say("late", late_words(sink, late, running.job.late), sink=sink.name, rows=late.height)
    if sink.place == "memory":
        view.show(sink.name, running.table())
    else:
        view.say("ended", f"{sink.name}: ended; its answer is in {sink}", sink=sink.name)
