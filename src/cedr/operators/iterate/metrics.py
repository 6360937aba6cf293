"""Metrics of a loop: iterations, punctuations, lag."""

from typing import NamedTuple


class LoopMetrics(NamedTuple):
    """What the evaluation of the paper looks at (FFP, 5.2.1). Operators read no clock: silence is counted in chunks."""

    method: str
    iterations: int
    speculative_punctuations: int
    definite_punctuations: int
    lag: int | None
    """How far the definite punctuation is behind the external progress; None before both are known."""
    synopsis_rows: int
    """Rows that the operators of the body hold."""
    longest_silence: int
    """The most chunks in a row without a definite punctuation: the less, the livelier."""
