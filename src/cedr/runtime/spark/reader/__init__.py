"""The tasks that read: rows of a source become packets for the shards.

source      cedr's file source, as Spark calls it
packer      rows become packets: checked, passed through the operators without state, split by shard
batch_time  the wall-clock time, the same for all tasks of a micro-batch
"""
