"""Replicas: one query run several times, each run with its own process and checkpoint, merged into one answer.

copies      what a replica writes: its changes as files, and how far it has come
control     the small store in which members, what is wished of them and feedback are noted
replicas    the set: start a replica, merge them all, cut over, jump-start
member      the process of one replica, or of the merge
supervisor  the process that keeps the others running
"""
