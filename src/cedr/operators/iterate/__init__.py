"""Loops: a body that derives rows from its own output, and the Flying Fixed-Point that knows how far it has come.

body       the operators between the loop's start and its end
holdings   what the loop holds at each instant, and how many derivations support it
ffp        how progress is found: High-Water-Mark, Probing, Hybrid
iterate    the operator: lets rows circulate, and tells what changes
"""
