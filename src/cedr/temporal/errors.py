"""The errors and warnings of cedr. Each message names the mistake and a correct alternative."""

from cedr.secret import hidden


class CedrError(Exception):
    """Base of every error that cedr raises. The command line prints it without a traceback. Passwords and other secrets
    in its text are masked."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(hidden(arg) if isinstance(arg, str) else arg for arg in args))


class CedrWarning(UserWarning):
    """A query that will probably not work as intended: it never emits, or its state grows without bound."""


class LateWarning(CedrWarning):
    """Rows were set aside because they broke a promise of their source or could not be used."""


class TimeError(CedrError, ValueError):
    """A value that is not a time: missing, fractional, NaN, or outside 64 bits."""


class LifetimeError(CedrError, ValueError):
    """An interval that is empty or runs backwards."""


class PayloadError(CedrError, TypeError):
    """A payload that cannot be compared or looked up, such as one with a mutable object."""


class StreamError(CedrError, ValueError):
    """An element that breaks a promise of the stream it arrives in.

    `position` is the position of `element` in arrival order (from 0), `promise` describes what it breaks.
    """

    def __init__(self, element: object, position: int, promise: str) -> None:
        self.element = element
        self.position = position
        self.promise = promise
        super().__init__(f"element {position}, {element}: {promise}")


class QueryError(CedrError, ValueError):
    """An invalid query, detected before it runs."""


class StateError(CedrError, ValueError):
    """A snapshot that does not fit the query it is restored into, or that another version of cedr wrote."""


class DivergenceError(QueryError):
    """A loop that never stops deriving new rows, detected while it runs."""


class DamagedFileError(CedrError, RuntimeError):
    """A file written by cedr that has since been changed, truncated, emptied, replaced or deleted.

    `what` describes the damage of `file`, `remedy` what to do.
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
