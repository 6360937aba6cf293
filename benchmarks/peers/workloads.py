"""All workloads by name. A new one, such as a pattern, is a file of its own and a line here."""

from peers.join import JOIN
from peers.join import workload as join
from peers.pattern import PATTERN
from peers.sliding import SLIDING, SLIDING_ARRAYS
from peers.sliding import workload as sliding
from peers.windows import HOPPING, TUMBLING
from peers.workload import Workload

COMPARED = (HOPPING, TUMBLING, JOIN, SLIDING, SLIDING_ARRAYS, PATTERN)
"""cedr and Spark's own, in the order of the report."""

FEW, MANY = 5, 500
"""Seconds that events live where few or many are alive."""

GROWING = {
    "join": {length: join(f"join of {length} s", length * 1000) for length in (FEW, MANY)},
    "sliding sum": {length: sliding(f"sliding sum of {length} s", length) for length in (FEW, MANY)},
}
"""The same query with few and with many live tuples."""

WORKLOADS: dict[str, Workload] = {
    w.name: w for w in (*COMPARED, *(w for pair in GROWING.values() for w in pair.values()))
}
