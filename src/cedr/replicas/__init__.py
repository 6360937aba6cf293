"""Replicas: one query run several times, each run with its own process and checkpoint, merged into one answer.

copies      the output of a replica: its changes as files, and its progress
control     the small store of members, their desired states and feedback
replicas    the set: start a replica, merge them all, cut over, jump-start
member      the process of one replica, or of the merge
supervisor  the process that keeps the others running
"""
