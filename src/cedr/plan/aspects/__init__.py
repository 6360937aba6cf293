"""The values in which nodes answer the questions a plan asks them, below all nodes.

properties     what is known about the rows that leave a node
promises       about which columns promises can be made
progress       which promises an operator requires to emit and to forget
partitioning   by which columns rows must be in one shard
loops          why a node cannot be in the body of a loop
text           phrases that `explain` uses for several nodes
"""
