"""Random plans over large tables, each answered twice: by cedr, and by plain numpy, polars and DuckDB programs."""
