"""The output of commands with `--json`: one line of strict JSON."""

import json
import math
from typing import Any


def as_json(content: Any) -> str:
    """Numbers that JSON does not have, such as NaN, and all other types, such as times, become strings."""
    return json.dumps(plain(content), default=str, allow_nan=False)


def plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: plain(v) for name, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value
