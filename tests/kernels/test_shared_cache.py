"""Compiled code that many processes keep in one folder: each finds what belongs to its types."""

import threading
from concurrent.futures import ThreadPoolExecutor

from cedr.kernels.shared_cache import SharedCacheFile
from cedr.kernels.sorting import radix_argsort

WRITERS = 8


def test_what_is_saved_at_the_same_time_is_not_mixed_up(tmp_path):
    """Each writer has an index of its own, as a process has, and all begin at once."""
    begin = threading.Barrier(WRITERS)

    def save(number):
        file = SharedCacheFile(str(tmp_path), "function", "stamp")
        begin.wait()
        file.save(number, f"code for {number}")

    for _ in range(20):
        with ThreadPoolExecutor(WRITERS) as writers:
            list(writers.map(save, range(WRITERS)))
        found = SharedCacheFile(str(tmp_path), "function", "stamp")
        assert [found.load(number) for number in range(WRITERS)] == [f"code for {n}" for n in range(WRITERS)]
        found.flush()


def test_a_folder_that_is_not_there_has_nothing(tmp_path):
    assert SharedCacheFile(str(tmp_path / "no"), "function", "stamp").load(1) is None


def test_kernels_are_kept_this_way():
    assert isinstance(radix_argsort._cache._cache_file, SharedCacheFile)
