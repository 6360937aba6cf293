"""From what a user has to chunks: rows with times become elements with lifetimes, and progress.

ingest            the way in: tables or elements become chunks
event_time        the times of a source as columns, or expressions over columns
row_times         the times of each row in chronons, and what is wrong with those that cannot be used
user_times        times as users write them, and chronons
calendars         lengths that need real time
timed_table       a table with the progress between its rows
punctuation_rows  punctuations among the rows of a table
progress          how far a source has come: partitions, delays, idleness
keys              progress of each value of some columns
source_status     how far a source has come, small enough to be written with every micro-batch
late_rows         rows that could not be used, as users see them
files             Parquet, CSV and JSON lines
"""
