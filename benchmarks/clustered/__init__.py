"""Parts of the benchmark `cluster`."""
