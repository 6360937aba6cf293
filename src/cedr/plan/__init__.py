"""The logical plan: frozen nodes, rewrite rules, analysis, partitioning, the choice of operators, and `explain`.

nodes (each with all that a plan asks of it) -> rules (one per file, listed in optimizer.RULES) -> physical -> explain
"""
