"""The logical plan: frozen nodes, rewrite rules, properties, the choice of operators, and `explain`.

nodes (one file per family) -> rules (one per file, listed in optimizer.RULES) -> properties -> physical -> explain
"""
