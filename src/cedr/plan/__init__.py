"""The logical plan: frozen nodes with their descriptions, rewrite rules, analysis, partitioning, and `explain`.

nodes (each with all that a plan asks of it) -> rules (one per file, listed in optimizer.RULES) -> fragment -> explain

Nothing here knows an operator. `cedr.physical` makes the operators of a fragment.
"""
