"""Parts of `benchmarks/state.py` that are questions of their own."""
