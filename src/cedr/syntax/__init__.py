"""The text of queries: grammar, syntax tree, errors with positions, and scalar expressions compiled to polars.

Nothing here needs a stream, so sources use it too: their times may be expressions over columns. `cedr.language`
compiles the trees to streams.
"""
