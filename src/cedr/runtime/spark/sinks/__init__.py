"""Where the answer of a query is kept as a table: one sink per file, made by the functions in `cedr.sinks`.

base       what a sink promises, and the table it keeps
parquet    a folder of Parquet files, with `manifest` to say which of them are the table
sql        what PostgreSQL and DuckDB share: a row per tuple, found again by its `identity`
postgres   a table in PostgreSQL, with `postgres_types` for how values are written and read there
duckdb     a table in a DuckDB file
memory     a table in the driver
foreach    no table: a function of the user's gets every change
"""
