"""By which columns rows must agree to be processed in one shard.

A node that combines rows names the columns they are combined by. A column that several inputs have in common has a name
in each, so a key is a tuple of names by input. The first is the name in the output, too (except for patterns, whose
outputs are named by the user):

    group_by("a", "b")                       [("a",), ("b",)]
    join(left_on="a", right_on="x")          [("a", "x")]
    agg() of all rows, join without keys     []                  all rows must be in one shard

Any subset of the keys that is not empty is enough: rows that are separated by `a` are separated by `a, b` as well.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cedr.columnar.sharding import can_be_key
from cedr.plan.schema import Schema

Keys = tuple[str, ...]


class PartitionRequirement(NamedTuple):
    keys: list[Keys]
    """Each by its names in the partitioned inputs. Empty: all rows in one shard."""
    reason: str
    """How rows are combined, for `explain`."""
    ports: tuple[int, ...] | None = None
    """The inputs that are partitioned; every shard gets all rows of the others. None: all inputs."""
    broadcast_reason: str = ""
    """Why every shard gets all rows of the others."""
    one_shard_reason: str = ""
    """Why there are no keys, if that is not obvious."""


def columns_as_keys(names: Iterable[str], schema: Schema, inputs: int = 1) -> list[Keys]:
    """Those of the columns that can be hashed, which have the same name in all inputs."""
    return [(name,) * inputs for name in names if can_be_key(schema[name])]


def grouped_by(columns: Sequence[str]) -> str:
    return f"grouped by {', '.join(columns)}" if columns else "all rows belong together"
