"""The environment of the processes that work on rows: Spark's Python workers, and the processes of the shards."""

ENVIRONMENT = {
    "POLARS_MAX_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": str(256 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(512 << 20),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:10000,muzzy_decay_ms:10000",
}
"""One thread per process, because Spark runs as many tasks in parallel as there are cores. Memory is kept between
micro-batches: a batch needs as much as the previous one, and returned pages have to be zeroed again. The allocators of
Python, Arrow and polars each have their own setting for that; Arrow can use Python's, and polars' returns memory that
was not used for 10 s. Decision 26."""
