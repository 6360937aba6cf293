"""Logical merge, one algorithm per file; `base` defines what they share and promise, `algorithms` names them."""
