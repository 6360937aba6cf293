"""Compiled functions over arrays; their machine code is kept for the processes that come later."""

from cedr.kernels import shared_cache

shared_cache.use()
