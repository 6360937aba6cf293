"""A folder for the input and output of one workload, gone when it is done."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def room() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="cedr-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
