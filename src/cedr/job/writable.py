"""Checks that the sinks of a job can write to their places, before any of them creates anything.

Missing folders are created when a sink opens; what prevents that is an error in the job file.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from cedr.job.sinks import FILES, JobSink


def check_writable(sinks: Iterable[JobSink]) -> None:
    for sink in sinks:
        for key, path in local_places(sink):
            if problem := problem_of(Path(path), key in FILES):
                assert sink.section is not None
                raise sink.section.mistake(problem, key)


def local_places(sink: JobSink) -> Iterator[tuple[str, str]]:
    """The paths on this machine, by key."""
    if isinstance(sink.target, str) and sink.target:
        yield sink.place, sink.target
    if sink.late is not None:
        yield "late", sink.late


def problem_of(path: Path, is_file: bool) -> str | None:
    if "://" in str(path):
        return None
    try:
        there = next(p for p in (path, *path.parents) if p.exists())
    except OSError as e:
        return f"{path} cannot be used: {e.strerror}"
    if there != path and not there.is_dir():
        return f"{there} is a file; cannot create the folder {path.parent if is_file else path}"
    if there == path and is_file and path.is_dir():
        return f"{path} is a folder; choose a file in it, such as {path.name}/answers.duckdb"
    if there == path and not is_file and not path.is_dir():
        return f"{path} is a file; choose a folder"
    if not os.access(there, os.W_OK | (os.X_OK if there.is_dir() else 0), effective_ids=True):
        return f"{there} is not writable for this user; change its permissions, or choose another place"
    return None
