"""All state in files, see `cedr.columnar.mapped`: every array and frame, and no page stays resident after a chunk."""

import resource
from contextlib import contextmanager
from weakref import WeakValueDictionary

from cedr.columnar import mapped
from cedr.columnar.mapped import MEMORY
from cedr.operators.base import Operator


def use_files(monkeypatch, folder):
    monkeypatch.setattr(mapped, "LARGE", 1)
    monkeypatch.setattr(mapped, "FRAME", 1)
    monkeypatch.setattr(MEMORY, "limits", {"test": 0})
    monkeypatch.setattr(MEMORY, "folder", str(folder))
    monkeypatch.setattr(MEMORY, "files", WeakValueDictionary())  # other tests may have left some
    count = Operator._count

    def count_and_trim(self, chunk, out):
        count(self, chunk, out)
        MEMORY.trim()

    monkeypatch.setattr(Operator, "_count", count_and_trim)


@contextmanager
def files_of_at_most(nbytes):
    """As if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
