"""How early a stateful operator emits results: a choice of the plan, one for each operator."""

from typing import Literal

Latency = Literal["perfect", "ordered", "eager"]
"""
perfect   results whose end is known; perfect input gives perfect output
ordered   results whose start is known, with the end as known so far; ordered input gives ordered output
eager     everything that follows from the input so far, the future included
"""
