"""Errors on their way from a task to the user: the message survives, the tracebacks of three languages do not."""

import re
from collections.abc import Iterator
from typing import TypeVar

from cedr.storage.folder import NEW_CHECKPOINT
from cedr.storage.seal import OTHER_CONTENT
from cedr.temporal import errors
from cedr.temporal.errors import CedrError, DamagedFileError

BEGIN, END = "<<cedr:", ":cedr>>"
SPARKS_NOTES = re.compile(r"(?:Checksum error: |Failed to read log file )(?:file:)?(\S+?)(?: at |\. )")
"""Spark's messages about damaged files of its own, in one of our checkpoints."""
T = TypeVar("T")


class TaskError(Exception):
    """The error of a task: Spark shows its text among tracebacks, `cedr_error_inside` extracts it."""


def task_error(kind: str, text: str) -> TaskError:
    return TaskError(f"{BEGIN}{kind}:{text}{END}")


def with_task_errors(results: Iterator[T]) -> Iterator[T]:
    """The results of a task; our errors reach the user."""
    try:
        yield from results
    except CedrError as e:
        raise task_error(kind_of(e), str(e)) from None


def kind_of(error: CedrError) -> str:
    """The name of its nearest public class."""
    return next(c.__name__ for c in type(error).__mro__ if hasattr(errors, c.__name__))


def damage_to_sparks_notes(text: str) -> DamagedFileError | None:
    found = SPARKS_NOTES.search(text)
    return None if found is None else DamagedFileError(found[1], OTHER_CONTENT, NEW_CHECKPOINT)


def cedr_error_inside(error: BaseException) -> CedrError | None:
    """Our error inside one of Spark's, if there is one."""
    found = re.search(f"{BEGIN}(.*?):(.*?){END}", str(error), re.DOTALL)
    if found is None:
        return damage_to_sparks_notes(str(error))
    kind, text = found.groups()
    named = getattr(errors, kind, None)
    kind_ = named if isinstance(named, type) and issubclass(named, CedrError) else CedrError
    result = kind_.__new__(kind_)
    Exception.__init__(result, text)
    return result
