"""What a user may set about a loop."""

from dataclasses import dataclass

from cedr.operators.iterate.ffp import Progress
from cedr.operators.iterate.selection import Selection

TURNS = 64
MOST = 10_000


@dataclass(frozen=True)
class Settings:
    progress: Progress = "hybrid"
    """How it is found how far the loop has come."""
    most: int = MOST
    """A loop that has not come to rest after so many turns is stopped."""
    turns: int = TURNS
    """At most so many turns after each chunk of input."""
    selection: Selection | None = None
