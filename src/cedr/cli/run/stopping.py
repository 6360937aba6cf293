"""Ctrl-C and SIGTERM as a word that is heard between two looks at a query.

An exception would come in the middle of a call to Java, and leave its words and a traceback on the screen. The second
time nothing is waited for.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopping() -> Iterator[Event]:
    """The event is set when somebody wants it to stop."""
    wanted = Event()

    def hear(number: int, frame: Any) -> None:
        if wanted.is_set():
            raise KeyboardInterrupt
        wanted.set()

    before = {number: signal.signal(number, hear) for number in SIGNALS}
    try:
        yield wanted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
