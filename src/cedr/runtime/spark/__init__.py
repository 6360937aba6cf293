"""cedr on Spark: the same engine, in shards, fed with packets by micro-batches.

packer     rows of a source become packets: checked, through the operators without state, split by shard
shard      one shard of one stage: its engine, its progress, its version; state is a snapshot and a log in a folder
server     the long-lived process of a shard, which any Python worker of the machine may ask
streaming  a query over streaming DataFrames
batch      the same query over static ones
files      cedr's own source for files
sinks      where the answer goes

Nothing of this is needed to write a query; `Stream.start` and `Stream.batch` import it when they are called.
"""
