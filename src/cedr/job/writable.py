"""Can the sinks of a job write where they should? Asked before any of them makes anything.

Missing folders are made when a sink opens; what stands in their way is a mistake of the job file.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from cedr.job.sinks import JobSink


def check_writable(sinks: Iterable[JobSink]) -> None:
    for sink in sinks:
        for key, path in local_places(sink):
            if problem := problem_of(Path(path), key == "duckdb"):
                assert sink.section is not None
                raise sink.section.mistake(problem, key)


def local_places(sink: JobSink) -> Iterator[tuple[str, str]]:
    """By key the paths on this machine."""
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
        return f"{there} is a file, so there can be no folder {path.parent if is_file else path}"
    if there == path and is_file and path.is_dir():
        return f"{path} is a folder; name a file in it, such as {path.name}/answers.duckdb"
    if there == path and not is_file and not path.is_dir():
        return f"{path} is a file; name a folder"
    if not os.access(there, os.W_OK | (os.X_OK if there.is_dir() else 0), effective_ids=True):
        return f"{there} cannot be written by this user; change its permissions, or name another place"
    return None
