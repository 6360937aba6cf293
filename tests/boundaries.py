"""Reads the tables of boundaries in the documentation, and asks the engine and the oracle about their examples.

A row has what is written, the rule, and examples such as `A0 B5`: `[5, 6)`. Events are a name and a start, living for
one chronon, or a name and a lifetime, `a[0, 4)`. `none`: there is no answer. What follows a lifetime is its payload.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cedr.temporal import INF, History, Row

DOCS = Path(__file__).parents[1] / "docs"
EVENT = re.compile(r"([A-Za-z]+)(?:(\d+)|\[(\d+), (\d+|∞)\))(?::(\d+))?")
EXAMPLE = re.compile(r"`([^`]*)`: (?:`([^`]*)`|(none))")


class Case(NamedTuple):
    written: str
    events: str
    answer: str


def cases(page: str, heading: str) -> Iterator[Case]:
    """The examples of the table under a heading."""
    text = (DOCS / page).read_text().partition(f"### {heading}\n")[2]
    table = re.search(r"\|[^\n]*\|\n\|[-|]*\|\n((?:\|[^\n]*\|\n)+)", text)
    assert table is not None, f"{page} has no table under {heading}"
    for line in table[1].splitlines():
        written, _, examples = (cell.strip() for cell in line.strip("|").split(" | "))
        found = EXAMPLE.findall(examples)
        assert found, f"{page}: {line} has no example"
        for events, answer, _ in found:
            yield Case(written.strip("` "), events, answer)


def histories(events: str, names: str) -> dict[str, History]:
    """The events of each name; the number behind a colon is the value of the column v, else 0."""
    found: dict[str, list[tuple[int, int, Row]]] = {name: [] for name in names}
    for name, start, vs, ve, v in EVENT.findall(events):
        end = int(start) + 1 if start else INF if ve == "∞" else int(ve)
        found[name].append((int(start or vs), end, Row(v=int(v or 0))))
    return {name: History(rows) for name, rows in found.items()}


def shown(history: History) -> str:
    """The answer as the tables have it: lifetimes, and payloads where they show more than the events."""
    parts = [(e.vs, e.ve, ", ".join(f"{k}={v}" for k, v in e.payload.items())) for e in history]
    return " ".join(f"[{vs}, {'∞' if ve == INF else ve}){' ' * bool(p)}{p}" for vs, ve, p in sorted(parts))
