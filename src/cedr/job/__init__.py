"""Job files: a query, its sources, its sinks and Spark's settings in one TOML file that can be checked and run.

places     the line of each key in a TOML text
mistake    an error in a job file: one message that names the line and the key
section    a table of a job file with its place: values by key and kind, and errors at the right line
variables  ${NAME} and ${file:PATH} in texts, and which of them are secrets
types      the types of columns, as job files write them
sources    [sources.NAME]: a stream and where its rows come from
query      [query]: text, file or function, and the streams it defines
function   user functions, named as file.py:function or module:function
level      [consistency]
sinks      [sinks.NAME]: where an answer goes
writable   whether the sinks can write to their places
spark      [spark]
job        all of them together: `read("job.toml")`
rows       the rows of file sources, read in this process
"""
