"""A snapshot as the files of a checkpoint have it, and back."""

import json
from typing import Any

import numpy as np

from cedr.storage.tables import about, read_table, to_bytes
from cedr.storage.tree import TreeReader, TreeWriter


def through_bytes(tree: Any) -> Any:
    writer = TreeWriter()
    values = json.dumps(writer.json(tree), allow_nan=False)
    tables = [(np.frombuffer(to_bytes(table), np.uint8).copy(), about(table)) for table in writer.tables]
    return TreeReader([read_table(*table) for table in tables]).tree(json.loads(values))
