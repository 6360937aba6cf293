"""One shard of one stage: the long-lived process that holds its state, and how tasks reach it.

shard     the engine of a shard, its progress and its version
state     what a shard can be rebuilt from: a snapshot and the packets since
server    the process of a shard; client: how a task asks it; wire: the messages between them
packet    what travels between the tasks of a micro-batch
upstream  how far the shards of an earlier stage have come
worker    Spark's Python workers between our tasks
errors    errors on their way from a task to the user
"""
