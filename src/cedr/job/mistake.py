"""Errors in a job file: `job.toml:12: sources.readings.delay: ...; write ...`."""

from cedr.secret import hidden
from cedr.temporal.errors import QueryError


class JobError(QueryError):
    """One error in a job file, with the line and the key it is about."""

    def __init__(self, file: str, line: int | None, key: str, problem: str) -> None:
        self.file, self.line, self.key, self.problem = file, line, key, hidden(problem)
        place = file if line is None else f"{file}:{line}"
        super().__init__(": ".join(part for part in (place, key, problem) if part))
