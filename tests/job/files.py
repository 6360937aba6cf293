"""A small job that is right, for tests to break, run and compare."""

from pathlib import Path

JOB = '''\
# loads above a half
[query]
text = """
EVENT Hot
WHEN ANY(readings r)
WHERE r.load > 0.5
OUTPUT r.machine, r.load
"""

[sources.readings]
files = "data/*.csv"
columns = { machine = "str", load = "float" }
vs = "start"
ve = "end"
delay = 5

[consistency]
level = "middle"

[sinks.hot]
parquet = "out/hot"

[spark]
master = "local[2]"
shards = 2
trigger = "1 second"
'''

ROWS = """\
start,end,machine,load
0,10,web1,0.9
5,15,web2,0.2
3,9,web1,0.7
20,30,db1,0.8
"""
LATER = """\
start,end,machine,load
1,4,late,0.9
21,24,web1,0.6
"""


def put(folder: Path, job: str = JOB) -> Path:
    """The job and its data in a folder."""
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "a.csv").write_text(ROWS)
    (folder / "data" / "b.csv").write_text(LATER)
    (folder / "job.toml").write_text(job)
    return folder / "job.toml"
