"""Finalize: turns any input into a valid stream (technical report, 4.6).

rows       the rows of a chunk, checked against everything promised before them
chains     tuples that may still be adjusted, and adjusts that arrived before the change they follow
finalize   the operator: validates, applies, and decides how far its own CTI can advance
"""
