"""Ctrl-C and SIGTERM as an event that is polled.

An exception could interrupt a call to Java and leave a traceback on the screen. The second signal stops at once.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopping() -> Iterator[Event]:
    """The event is set when the user wants to stop."""
    requested = Event()

    def handle(number: int, frame: Any) -> None:
        if requested.is_set():
            raise KeyboardInterrupt
        requested.set()

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
