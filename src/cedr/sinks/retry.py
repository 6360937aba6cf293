"""Stores that are unreachable for a while: actions are retried with increasing pauses, up to a limit.

Only idempotent actions are retried. A commit is one: its batch number is in the same transaction, so if the
connection was lost after the store had committed, the second try finds the number there and does nothing.
"""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from cedr.sinks.base import SinkError
from cedr.temporal.duration import Duration, duration, show_duration

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE, GROWTH = 0.05, 5.0, 2.0
LOOK = 0.1
"""Seconds between checks whether to stop."""

log = logging.getLogger("cedr.sinks")


class UnreachableError(SinkError):
    """A store that cannot be reached now, but may be later."""


class Retry:
    """`limit` is how long to retry. `trouble` is the current problem while it waits."""

    def __init__(self, limit: Duration) -> None:
        self.limit = duration(limit, "retry", least=0)
        self.trouble: str | None = None
        self.stopped = False

    def __call__(self, action: Callable[[], T], limit: float | None = None) -> T:
        """The result of the action, once the store can be reached; `limit` in seconds replaces the usual one."""
        seconds = self.limit / 1e6 if limit is None else min(limit, self.limit / 1e6)
        until, pause = time.monotonic() + seconds, FIRST_PAUSE
        try:
            while True:
                try:
                    return action()
                except UnreachableError as e:
                    if self.stopped or time.monotonic() >= until:
                        raise self._given_up(e, seconds) from None
                    self._report(e)
                self._wait(min(time.monotonic() + pause, until))
                pause = min(pause * GROWTH, LONGEST_PAUSE)
        finally:
            if self.trouble is not None:
                log.info("no longer waiting: %s", self.trouble)
            self.trouble = None

    def _report(self, error: UnreachableError) -> None:
        trouble = f"{error}; retrying for up to {show_duration(self.limit)}"
        if self.trouble != trouble:
            log.warning("%s", trouble)
        self.trouble = trouble

    def _wait(self, until: float) -> None:
        while not self.stopped and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, LOOK))

    def _given_up(self, error: UnreachableError, seconds: float) -> SinkError:
        if not seconds:
            return SinkError(str(error))
        tried = show_duration(round(seconds * 1e6))
        return SinkError(
            f"{error}; retried for {tried}. Nothing is lost: restart the query when the store can be reached, "
            'or give the sink a longer time, such as retry="1h"'
        )
