"""The mistakes a user can make about time and streams, each with a message that says what would be right."""

from cedr.secret import hidden


class CedrError(Exception):
    """Base of every error cedr raises on purpose. The command line prints it without a traceback. Passwords and other
    secrets in its text are replaced, whoever put them there."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(hidden(arg) if isinstance(arg, str) else arg for arg in args))


class CedrWarning(UserWarning):
    """What will probably disappoint, though nothing is wrong yet: a query that never speaks, or only grows."""


class LateWarning(CedrWarning):
    """Rows were set aside, because they broke a promise of their source or could not be used."""


class TimeError(CedrError, ValueError):
    """A value that is not a time: missing, fractional, NaN, or outside 64 bits."""


class LifetimeError(CedrError, ValueError):
    """An interval that is empty or runs backwards."""


class PayloadError(CedrError, TypeError):
    """A payload that cannot be compared or found again, such as one holding a mutable object."""


class StreamError(CedrError, ValueError):
    """An element that breaks a promise of the stream it arrives in.

    `element` is what arrived, `position` its place in arrival order (from 0), and `promise` what it breaks.
    """

    def __init__(self, element: object, position: int, promise: str) -> None:
        self.element = element
        self.position = position
        self.promise = promise
        super().__init__(f"element {position}, {element}: {promise}")


class QueryError(CedrError, ValueError):
    """A query that cannot mean anything, found before it runs."""


class DivergenceError(QueryError):
    """A loop that derives new rows for ever, found while it runs."""


class DamagedFileError(CedrError, RuntimeError):
    """A file that cedr wrote and that is not the same any more: changed, cut off, empty, exchanged or missing.

    `file` is the file, `what` a sentence about it, `remedy` what to do.
    """

    def __init__(self, file: str, what: str, remedy: str) -> None:
        self.file, self.what, self.remedy = file, what, remedy
        super().__init__(f"damaged file {file}: {what}. {remedy}")


class StorageError(CedrError, RuntimeError):
    """A file that cannot be written: the disk is full, read-only or broken."""

    def __init__(self, file: str, error: Exception) -> None:
        self.file = file
        why = getattr(error, "strerror", None) or error
        super().__init__(
            f"{file} cannot be written: {why}. What was finished before is safe: remove the cause and start the query "
            "again"
        )
