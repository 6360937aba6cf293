"""Recorded changelogs: the output of a query in the order it was emitted, to be read again.

A changelog is a Parquet or CSV file, or a folder of such, with the columns `change` (insert, adjust, remove, cti),
`vs`, `ve`, `ve_new`, the payload, and optionally `shard` and `emitted`, the time of day when the row was emitted.

changelog    reading and writing
history      the canonical and the tritemporal table, as known at a CEDR time
difference   are two changelogs logically equivalent; if not, the first difference
pace         the rows again, at the pace they were emitted
lifetimes    pictures of lifetimes and what became of them
"""
