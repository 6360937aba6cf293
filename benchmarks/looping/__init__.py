"""Further measurements of `./cedr bench ffp`, besides the figures of the paper."""
