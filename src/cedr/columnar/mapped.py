"""State that is larger than memory: large arrays and frames in files on the local disk, mapped into memory.

Each process has one `StateMemory`, `MEMORY`, with a limit. While its state is small, arrays and frames are ordinary
memory. Once it takes a quarter of the limit, large ones that are created or grow are put into files (with hash tables
and room to grow, memory is about twice what the state counts as). The kernel reads the
pages that are touched, and kernels and polars work on them as on any memory. Where the places that are needed are known
before, they are read from the file instead (`cedr.kernels.files`). After a chunk that left more pages resident than the
limit allows, the process gives some back, those of large files first; what was changed goes to the disk.

The files have no names, so nobody else can open them, and none is left over, however the process ends. They are not
part of a checkpoint: after a restart state is read from its snapshot. The space of a file is allocated before it is
mapped, so a full disk is an error, and not a signal that ends the process.
"""

import mmap
import os
import re
import tempfile
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
import polars as pl
import pyarrow as pa
from polars.exceptions import PolarsError

from cedr.temporal.errors import CedrError, QueryError

Array = np.ndarray[Any, Any]

LARGE = 1 << 20
"""Bytes from which on an array or frame is put into a file. Tests set it to 1."""
FRAME = 1 << 24
"""Bytes from which on rows of an index are put into a file: they are small pieces at first, and are merged."""
UNLIMITED = 1 << 62
PAGE = mmap.PAGESIZE
LOCAL = "local"
"""The limit of queries that run in this process."""


class SpillError(CedrError, RuntimeError):
    """There is no room on the disk for state that does not fit into memory."""


class MappedFile(mmap.mmap):
    """A file without a name, mapped. Arrays and frames over it hold it; it is gone with the last of them."""

    number: int | None = None
    """The open file."""

    def __del__(self) -> None:
        if self.number is not None:
            os.close(self.number)


class FilePlace(NamedTuple):
    """Where in a file values lie one after the other: the number of the open file, and bytes before the first."""

    number: int
    offset: int


class StateMemory:
    """Where the state of this process is: `limit` bytes of it may be resident. `folder`: of the files."""

    def __init__(self) -> None:
        self.limits: dict[str, int] = {}
        """By query."""
        self.folder = spill_folder()
        self.files: WeakValueDictionary[int, MappedFile] = WeakValueDictionary()
        """By the address of their first byte."""
        self._sizes: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._before = 0
        """Bytes of program files that are resident: they are counted with ours."""

    # --- how much there is -------------------------------------------------------------------------------------------

    def allow(self, query: str, nbytes: int) -> None:
        """A query may keep this number of bytes resident in this process; those of several are added up."""
        self.limits[query] = nbytes

    def withdraw(self, query: str) -> None:
        """The query has ended."""
        self.limits.pop(query, None)

    @property
    def limit(self) -> int:
        return sum(self.limits.values()) if self.limits else UNLIMITED

    def note(self, owner: Any, nbytes: int) -> None:
        """The state of an engine has this number of bytes, wherever they are."""
        self._sizes[owner] = nbytes

    @property
    def is_short(self) -> bool:
        """Whether state is so large that large parts of it belong into files."""
        return bool(self.limits) and 4 * sum(self._sizes.values()) >= self.limit

    @property
    def on_disk(self) -> int:
        """Bytes of the files."""
        return sum(len(file) for file in self.files.values())

    def trim(self, soon: int = 0) -> bool:
        """Give pages back if more of them are resident than the limit allows, or will be after some bytes more; whether
        it was so. Those of large files come first: at random places a page of a small one is used more often."""
        if not self.files or self._resident() - self._before + soon <= self.limit * 3 // 4:
            return False
        for file in sorted(self.files.values(), key=len, reverse=True):
            file.madvise(mmap.MADV_DONTNEED)
            if self._resident() - self._before + soon <= self.limit // 2:
                break
        return True

    def _resident(self) -> int:
        """Bytes of mapped files that are resident."""
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[2]) * PAGE

    # --- arrays ------------------------------------------------------------------------------------------------------

    def room(self, shape: tuple[int, ...], dtype: Any = np.int64) -> Array:
        """An array whose values are not defined."""
        nbytes = prod(shape) * np.dtype(dtype).itemsize
        if not self._belongs_on_disk(nbytes):
            return np.empty(shape, dtype=dtype)
        with self._opened(nbytes) as file:
            return self._array(file.fileno(), shape, dtype)

    def _belongs_on_disk(self, nbytes: int) -> bool:
        return nbytes >= LARGE and self.is_short

    def zeros(self, size: int, dtype: Any) -> Array:
        """An array of zeros; a new file has nothing else."""
        if not self._belongs_on_disk(size * np.dtype(dtype).itemsize):
            return np.zeros(size, dtype)
        return self.room((size,), dtype)

    def grown(self, array: Array, rows: int) -> Array:
        """An array with room for this number of rows, whose first ones are those of an array, which is not used any
        more. One that is in a file is not copied; the file grows."""
        shape = (rows, *array.shape[1:])
        file = self.files.get(address(array))
        if file is None or file.number is None:
            larger = self.room(shape, array.dtype)
            larger[: len(array)] = array
            return larger
        return self._array(file.number, shape, array.dtype)

    def _array(self, number: int, shape: tuple[int, ...], dtype: Any) -> Array:
        nbytes = prod(shape) * np.dtype(dtype).itemsize
        try:
            os.posix_fallocate(number, 0, nbytes)
        except OSError as e:
            raise self._no_room(nbytes, e) from None
        file = MappedFile(number, nbytes)
        file.madvise(mmap.MADV_RANDOM)
        file.number = os.dup(number)
        array = np.frombuffer(file, dtype=dtype).reshape(shape)
        self.files[address(array)] = file
        return array

    def place_of(self, array: Array) -> FilePlace | None:
        """The file that has an array, if it is in one."""
        file = self.files.get(address(array)) if self.files else None
        return None if file is None or file.number is None else FilePlace(file.number, 0)

    def place_within(self, array: Array) -> FilePlace | None:
        """The same for an array that is a part of what is in a file."""
        for begin, file in self.files.items():
            if begin <= address(array) < begin + len(file) and file.number is not None:
                return FilePlace(file.number, address(array) - begin)
        return None

    def unreadable(self) -> SpillError:
        """The error if a file cannot be read."""
        return SpillError(
            f"state in a file in the folder {self.folder} cannot be read: the disk may be broken. What was finished "
            "before is safe: set TMPDIR to a folder on another disk and start the query again"
        )

    # --- frames ------------------------------------------------------------------------------------------------------

    def stored(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The same rows in an Arrow IPC file, which is never changed. Those with integers of 128 bits, which pyarrow
        cannot read, stay in memory."""
        nbytes = int(frame.estimated_size())
        with self._opened(nbytes) as file:
            try:
                frame.write_ipc(file, compression="uncompressed", record_batch_size=max(1, frame.height))
                file.flush()
            except (OSError, PolarsError) as e:
                raise self._no_room(nbytes, e) from None
            held = MappedFile(file.fileno(), 0, access=mmap.ACCESS_READ)
            held.number = os.dup(file.fileno())
        buffer = pa.py_buffer(held)
        self.files[buffer.address] = held
        try:
            mapped = pl.from_arrow(pa.ipc.open_file(buffer).read_all())
        except pa.ArrowNotImplementedError:
            return frame
        assert isinstance(mapped, pl.DataFrame)
        return mapped

    # --- files -------------------------------------------------------------------------------------------------------

    def _opened(self, nbytes: int) -> Any:
        if not self.files:
            self._before = self._resident()
        try:
            return read_at_random(tempfile.TemporaryFile(dir=self.folder))
        except OSError as e:
            raise self._no_room(nbytes, e) from None

    def _no_room(self, nbytes: int, error: Exception) -> SpillError:
        return SpillError(
            f"state does not fit into state_memory = {self.limit:,} bytes, and {nbytes:,} bytes of it cannot be put "
            f"into the folder {self.folder}: {getattr(error, 'strerror', None) or error}. What was finished before is "
            "safe: make room there, set TMPDIR to a folder on a larger disk, or increase state_memory, and start the "
            "query again"
        )


def read_at_random(file: Any) -> Any:
    """The file, of which the kernel reads no more than is needed. Otherwise it reads ahead, in pages of up to 2 MB, and
    each of these that is written to costs a pass over all of it."""
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
    return file


def address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


# --- settings ---------------------------------------------------------------------------------------------------------

UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def limit_of(state_memory: str | int | None, shards: int = 1) -> int:
    """The setting in bytes; without it, what fits the machine."""
    return default_limit(shards) if state_memory is None else memory_size(state_memory)


def memory_size(value: str | int) -> int:
    """Bytes: 1073741824, "512m", "1g"."""
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", str(value).strip().lower()) if not isinstance(value, bool) else None
    if found is None or int(found[1]) == 0:
        raise QueryError(
            f'state_memory is {value!r}, which is not a size; write "512m", "1g" or a number of bytes, at least 1'
        )
    return int(found[1]) * UNITS.get(found[2], 1)


def default_limit(shards: int = 1) -> int:
    """Half of the memory of this machine or container, divided by the shards of the query."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in MEMORY_LIMITS:
        with suppress(OSError, ValueError):
            memory = min(memory, int(Path(file).read_text()))
    return max(memory // 2 // shards, 1)


def spill_folder() -> str:
    """The folder for temporary files. `/tmp` is in memory on many machines, and `/var/tmp` is not."""
    usual = tempfile.gettempdir()
    return "/var/tmp" if usual == "/tmp" and is_in_memory("/tmp") and os.access("/var/tmp", os.W_OK) else usual


def is_in_memory(folder: str) -> bool:
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return False
    return any(mount[1] == folder and mount[2] in ("tmpfs", "ramfs") for mount in mounts)


MEMORY = StateMemory()
"""The memory of this process."""
