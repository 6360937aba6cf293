"""Logical merge, one algorithm per file; `base` says what they share and promise, `algorithms` names them."""
