"""What is left of a stream of changes: rows that came in and did not go out again."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def settled(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Of files in Debezium's form; changes of one row may be in any order, as counts add up."""
    rows: Counter[str] = Counter()
    for path in files:
        for line in path.read_text().splitlines():
            change = json.loads(line)
            came = change["op"] == "c"
            rows[json.dumps(change["after" if came else "before"])] += 1 if came else -1
    return [json.loads(row) for row, count in rows.items() for _ in range(count)]
