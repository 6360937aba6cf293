"""A job in this process, from its first step to its last."""

import polars as pl

from cedr.cli.run.view import View
from cedr.job.job import Job
from cedr.job.local import LocalAnswer
from cedr.job.sinks import JobSink
from cedr.temporal.errors import CedrError


def run_locally(job: Job, view: View) -> bool:
    answers = [LocalAnswer(job, sink) for sink in job.sinks.values()]
    for answer in answers:
        answer.check()
    for answer in answers:
        try:
            for report in answer.steps():
                view.step(report)
        except CedrError as e:
            view.say("failed", f"error: {answer.sink.name}: {e}", sink=answer.sink.name)
            return False
        assert answer.result is not None
        sink = answer.sink
        if (late := answer.result.late()).height:
            view.say("late", late_words(sink, late, sink.late), sink=sink.name, rows=late.height)
        if sink.place == "memory":
            view.show(sink.name, answer.result.table())
        else:
            view.say("ended", f"{sink.name}: ended; its answer is in {sink}", sink=sink.name)
    return True


def late_words(sink: JobSink, late: pl.DataFrame, folder: str | None) -> str:
    """How many rows could not be used, why, and where they are."""
    one = late.height == 1
    column = "_reason" if "_reason" in late.columns else "reason"
    why = ", ".join(f"{reason}: {n:,}" for reason, n in late[column].value_counts(sort=True).iter_rows())
    kept = f"{'it is' if one else 'they are'} in {folder}"
    if not folder or sink.place == "memory":
        kept = f'a sink with late = "FOLDER" keeps {"it" if one else "them"}'
    return f"{sink.name}: {late.height:,} {'row' if one else 'rows'} could not be used ({why}); {kept}"
