"""Loops: a body that derives rows from its own output, and the Flying Fixed-Point that tracks its progress.

body            the operators between the loop's start and its end
support_table   what the loop holds at each instant, and how many derivations support it
ffp             how progress is found: High-Water-Mark, Probing, Hybrid
iterate         the operator: lets rows circulate, and emits what changes
"""
