"""What `./cedr bench ffp` measures beside the figures of the paper."""
