"""cedr on Spark: the same engine, in shards, fed with packets by micro-batches.

driver  starts the query, plans its stages, brings every micro-batch to the sinks
reader  the tasks that read sources and make packets of their rows
shard   the long-lived processes that hold the state

Nothing of this is needed to write a query; `Stream.start` and `Stream.batch` import it when they are called.
"""
