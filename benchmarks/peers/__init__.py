"""cedr and Spark's own operators over the same files: the parts of `benchmarks/spark.py`.

data        the events, from a seed, as Parquet files
workload    what a workload is
workloads   all of them; windows, join, sliding, pattern: one file per kind
side        one system runs one workload, in a process of its own
processes   starts such a process, watches its memory, ends it when it takes too long
measure     what came out of it: speed, memory, rows
answers     two answers are equal, or why not
"""
