"""cedr's own file source: Parquet, CSV and JSON lines become packets in the tasks that read them, without JVM rows.

settings     `files(...)`: the user's settings; needs neither Spark nor files
listing      which files exist
entry        what one micro-batch reads: its files, in splits of about equal size
log          the entries of a query in order, in its checkpoint; a restart reads the same batches again
clock        how times are written: numbers, timestamps, with a zone or without
columns      the columns a source needs, converted to its types
parquet      reads one Parquet file
text         reads one CSV or JSON lines file
unreadable   what could not be read, as an error or for the late stream
reading      the pieces of a split: frames, and what could not be read
source       the data source that Spark calls
"""

from cedr.sources.files.settings import Files, files

__all__ = ["Files", "files"]
