"""Errors on their way from a task to the user: the message survives, the tracebacks of three languages do not."""

import re
from collections.abc import Iterator
from typing import TypeVar

from cedr.temporal import errors
from cedr.temporal.errors import CedrError

BEGIN, END = "<<cedr:", ":cedr>>"
T = TypeVar("T")


class TaskError(Exception):
    """What a task raises: Spark shows its text among tracebacks, `original` finds it again."""


def carried(kind: str, text: str) -> TaskError:
    return TaskError(f"{BEGIN}{kind}:{text}{END}")


def carrying(results: Iterator[T]) -> Iterator[T]:
    """The results of a task, whose errors of ours reach the user."""
    try:
        yield from results
    except CedrError as e:
        raise carried(kind_of(e), str(e)) from None


def kind_of(error: CedrError) -> str:
    """The name of its nearest class that everybody knows."""
    return next(c.__name__ for c in type(error).__mro__ if hasattr(errors, c.__name__))


def original(error: BaseException) -> CedrError | None:
    """The error of ours inside one of Spark's, if there is one."""
    found = re.search(f"{BEGIN}(.*?):(.*?){END}", str(error), re.DOTALL)
    if found is None:
        return None
    kind, text = found.groups()
    named = getattr(errors, kind, None)
    known = named if isinstance(named, type) and issubclass(named, CedrError) else CedrError
    result = known.__new__(known)
    Exception.__init__(result, text)
    return result
