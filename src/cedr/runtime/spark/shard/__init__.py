"""One shard of one stage: the long-lived process that holds its state, and how tasks reach it.

shard     the engine of a shard, its progress and its version
state     what a shard is rebuilt from: a snapshot and the packets since
server    the process of a shard; client: the task's side; wire: the messages between them
packet    the messages between the tasks of a micro-batch
upstream  the progress of the shards of an earlier stage
worker    tuning of Spark's Python workers
errors    errors on their way from a task to the user
"""
