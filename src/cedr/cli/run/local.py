"""Runs a job in this process."""

import polars as pl

from cedr.cli.run.view import View
from cedr.job.job import Job
from cedr.job.local import LocalAnswer
from cedr.job.sinks import JobSink
from cedr.sources.late_rows import counted, summary
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
            view.message("failed", f"error: {answer.sink.name}: {e}", sink=answer.sink.name)
            return False
        assert answer.result is not None
        sink = answer.sink
        if (late := answer.result.late()).height:
            view.message("late", late_text(sink, late, sink.late), sink=sink.name, rows=late.height)
        if sink.place == "memory":
            view.show(sink.name, answer.result.table())
        else:
            view.message("ended", f"{sink.name}: finished; the answer is in {sink}", sink=sink.name)
    return True


def late_text(sink: JobSink, late: pl.DataFrame, folder: str | None) -> str:
    """How many rows could not be used, why, and where they are kept."""
    kept = f"see {folder}"
    if not folder or sink.place == "memory":
        kept = f'a sink with late = "FOLDER" keeps {"it" if late.height == 1 else "them"}'
    return f"{sink.name}: {summary(counted(late))}; {kept}"
