"""Session windows: events of a group whose starts follow each other by less than a timeout belong together.

Every member's lifetime becomes the session's, `[first.vs, last.vs + timeout)`.
"""

from collections.abc import Callable, Iterator
from typing import Any

from cedr.temporal import Event, History
from cedr.temporal.time import as_duration, plus


def session(history: History, timeout: int, by: Callable[[Any], Any] = lambda p: None) -> History:
    as_duration(timeout, "session timeout")
    return History(
        (members[0].vs, plus(members[-1].vs, timeout), e.payload)
        for group in history.groups(by).values()
        for members in sessions(group, timeout)
        for e in members
    )


def sessions(group: History, timeout: int) -> Iterator[list[Event]]:
    members: list[Event] = []
    for e in group:
        if members and e.vs - members[-1].vs >= timeout:
            yield members
            members = []
        members.append(e)
    if members:
        yield members
