"""How functions are compiled that are called for each row and allocate nothing: without counting references.

numba counts the references to an array wherever a function is called with it or returns early, and each count is a
locked instruction. A few calls for each row then cost more than the search that they are for. A function that neither
creates an array nor returns one needs no counts: its caller holds the arrays. Others fail to compile this way.
"""

from numba import njit

uncounted = njit(cache=True, _nrt=False)
