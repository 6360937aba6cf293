"""One driver at a time: a query holds its checkpoint while it runs, because two would remove each other's files.

The lock is the operating system's, so it is free as soon as its driver is gone, whatever ended it. Remote folders have
no such locks; there the newest driver counts (`epoch`).
"""

import fcntl
import os
import socket
from collections.abc import Callable
from contextlib import suppress

from cedr.storage.folder import Folder
from cedr.temporal.errors import QueryError


class InUseError(QueryError):
    """A checkpoint that another query holds now, but may release later."""


held: dict[str, "Lock"] = {}
"""The locks of this process. They are not let go of because nobody has the running query in a variable."""


class Lock:
    """`in_use`: whether its query still runs; one that has ended by itself gives way to the next.

    As a context, it is let go of when an error leaves the block, that is when no query has started.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.in_use: Callable[[], bool] = lambda: True
        if not folder.local:
            return
        if (earlier := held.get(folder.path)) is not None and not earlier.is_in_use():
            earlier.release()
        folder.make()
        self.file = os.open(f"{folder.path}/lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self.file, 1000, 0).decode(errors="replace")
            os.close(self.file)
            raise InUseError(
                f"the checkpoint {folder.place} is in use by a query that runs in {holder}; stop that one first, or "
                "use another checkpoint and table for this one"
            ) from None
        with suppress(OSError):  # on a full disk nobody learns who holds it, but it is held
            os.truncate(self.file, 0)
            os.pwrite(self.file, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        held[folder.path] = self

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is not None:
            self.release()

    def is_in_use(self) -> bool:
        try:
            return self.in_use()
        except Exception:  # Java is gone, and the query with it
            return False

    def release(self) -> None:
        if held.get(self.folder.path) is self:
            del held[self.folder.path]
            os.close(self.file)
