"""User settings of a loop."""

from dataclasses import dataclass

from cedr.operators.iterate.ffp import Progress
from cedr.operators.iterate.selection import Selection

ITERATIONS_PER_CHUNK = 64
MAX_ITERATIONS = 10_000
LOOP = "loop"
"""The input that takes what the loop holds."""


@dataclass(frozen=True)
class Settings:
    progress: Progress = "hybrid"
    """How the progress of the loop is determined."""
    max_iterations: int = MAX_ITERATIONS
    """A loop that still derives rows after this number of iterations fails."""
    iterations_per_chunk: int = ITERATIONS_PER_CHUNK
    """Maximum number of iterations after each chunk of input."""
    selection: Selection | None = None


def outside(number: int) -> str:
    """The name of an input that takes rows from outside the loop."""
    return f"input {number}"
