"""When state is worth keeping in blocks: when chunks are small compared with it, for a while.

Sorted arrays cost a pass over the state for each chunk, blocks some searches for each row of a chunk. Moving from one
to the other costs a few passes. Only blocks can be in files, so they are used if memory is short.
"""

from cedr.columnar.mapped import MEMORY

MUCH_STATE = 20_000
"""Rows of state from which on blocks are worth it. Tests set it to 0."""
SMALL_CHUNK = 64
"""Chunks are small if the state has at least this many times their rows."""
PATIENCE = 8
"""Small chunks in a row after which state moves to blocks: about what the move costs. Tests set it to 1."""


def is_small(rows: int, state: int) -> bool:
    return state >= MUCH_STATE and (rows * SMALL_CHUNK <= state or MEMORY.is_short)


def is_large(rows: int, state: int) -> bool:
    """Whether a chunk is so large that state in blocks should move to arrays. Between small and large nothing moves."""
    return rows * SMALL_CHUNK > 4 * max(state, MUCH_STATE) and not (state >= MUCH_STATE and MEMORY.is_short)
