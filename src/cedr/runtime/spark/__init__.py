"""cedr on Spark: the same engine, in shards, fed with packets by micro-batches.

driver  starts the query, plans its stages, commits every micro-batch to the sinks
reader  the tasks that read sources and turn their rows into packets
shard   the long-lived processes that hold the state

None of this is needed to write a query; `Stream.start` and `Stream.batch` import it when they are called.
"""
