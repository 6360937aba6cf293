"""The pattern operators of the CEDR language: `tree` has the patterns, `matcher` the operator that finds them."""
