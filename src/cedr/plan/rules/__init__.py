"""Rewrite rules, one per file; file and function share a name. A rule returns a plan with the same answer.

A rule that does not apply returns the plan object it was given; that is how `optimizer` knows which rules fired.
"""
