"""cedr and other systems over the same files: the parts of `benchmarks/spark.py` and `benchmarks/peers.py`.

data, parameters    the events, from a seed, as files; the numbers of the questions
workload            what a workload is
workloads           all of them; windows, join, sliding, pattern: one file per kind
side                one system runs one workload, in a process of its own
processes, rooms    starts such a process, watches its memory, ends it when it takes too long; its folder
measure             what came out of it: speed, memory, rows
answers             two answers are equal, or why not

For `./cedr bench peers` alone:

questions           workloads with their input and the form of their answers; Nexmark's are in `benchmarks/nexmark`
contestants         who takes part; choice: what `--only` chooses
environments        of those that cedr does not need itself: flink, bytewax, pathway, each with a folder here
turn, contest       a system that lives in cedr's environment answers; anybody's turn, judged
"""
