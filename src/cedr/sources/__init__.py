"""Input: rows with times become chunks of elements with lifetimes, and progress.

ingest            tables or elements become chunks
event_time        the times of a source as columns, or expressions over columns
row_times         the times of each row in chronons, and why some rows cannot be used
user_times        conversion between users' times and chronons
calendars         durations that need real time
timed_table       a table with the progress between its rows
punctuation_rows  punctuations among the rows of a table
progress          the progress of a source: partitions, delays, idleness
keys              progress for each value of some columns
source_status     a summary of a source's progress, small enough to be written with every micro-batch
late_rows         late rows in the user's terms
files             Parquet, CSV and JSON lines
"""
