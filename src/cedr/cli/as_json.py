"""What commands print with `--json`: one line that every reader of JSON takes."""

import json
import math
from typing import Any


def as_json(content: Any) -> str:
    """Numbers that JSON has not, such as NaN, are texts; so is everything else it does not know, such as times."""
    return json.dumps(plain(content), default=str, allow_nan=False)


def plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: plain(v) for name, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value
