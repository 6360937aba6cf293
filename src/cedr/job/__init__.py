"""Job files: a query, its sources, its sinks and Spark's settings in one TOML file that a user can check and run.

places     on which line each key of a TOML text stands
mistake    what is wrong with a job file: one message that names the line and the key
section    a table of a job file with its place: values by key and kind, mistakes where they are
variables  ${NAME} and ${file:PATH} in its texts, and which of them are secrets
types      the types of columns, as job files write them
sources    [sources.NAME]: a stream and where its rows come from
query      [query]: text, file or function, and the streams it makes
function   functions of the user's, named as file.py:function or module:function
level      [consistency]
sinks      [sinks.NAME]: where an answer goes
writable   can the sinks write where they should
spark      [spark]
job        all of them together: `read("job.toml")`
rows       the rows of file sources, read in this process
"""
