"""The pattern operators of the CEDR language: `tree` is what can be asked, `matcher` the operator that answers."""
