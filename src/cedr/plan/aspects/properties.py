"""What is known about the rows that leave a node.

ordered          sync times never decrease in arrival order
insert_only      there are no adjusts
key              columns that at any instant belong to at most one row; None when nothing is known
duplicate_free   no payload occurs twice at any instant
finite           every lifetime has an end
remember         the rows went through a Finalize that remembers this long; None when some did not

A property that is not known is False. Rules use them to drop work, operators to choose a simpler algorithm.
"""

from dataclasses import dataclass
from typing import TypedDict

Key = frozenset[str]


@dataclass(frozen=True)
class Properties:
    ordered: bool = False
    insert_only: bool = False
    key: Key | None = None
    duplicate_free: bool = False
    finite: bool = False
    remember: int | None = None

    @property
    def perfect(self) -> bool:
        return self.ordered and self.insert_only

    def __str__(self) -> str:
        parts = [
            "ordered" if self.ordered else "",
            "insert-only" if self.insert_only else "",
            "" if self.key is None else f"key ({', '.join(sorted(self.key))})",
            "duplicate-free" if self.duplicate_free else "",
            "finite" if self.finite else "",
        ]
        return ", ".join(part for part in parts if part) or "nothing known"


class OrderProperties(TypedDict):
    insert_only: bool
    ordered: bool


def order_at(latency: str | None, input: Properties) -> OrderProperties:
    """Perfect operators turn perfect input into perfect output, ordered ones ordered input into ordered output."""
    return {
        "insert_only": input.perfect and latency == "perfect",
        "ordered": input.ordered and latency in ("perfect", "ordered"),
    }


def shortest_memory(*inputs: Properties) -> int | None:
    """How long all inputs were remembered; None if one of them was not finalized."""
    lengths = [p.remember for p in inputs if p.remember is not None]
    return min(lengths) if len(lengths) == len(inputs) else None
