"""What the crash benchmark kills, when it kills it, and what must be true afterwards.

workload   the queries, and events that are out of order, late and corrected
driver     the program that is killed: one query on Spark, started with the same checkpoint again and again
victim     the same from outside: its processes, and how far it has come
kills      the kills, and what was going on when they hit
"""
