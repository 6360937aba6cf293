"""The numbers of the questions. Every program that asks them imports this file, so it needs nothing but Python."""

DELAY = 5
"""Seconds that a row may be late; the watermark of each system lags so far behind."""

WINDOW = 10
HOP = 1
"""Seconds; tumbling windows are as long as hopping ones."""

APART = 1_250
"""Milliseconds: partners of a join are less than this apart."""

SLIDING = 10
"""Seconds that an event counts in the sliding sum."""

SCOPE = 10
"""Seconds from the first to the second event of a pattern, at most."""

LOW, HIGH = 0.8, 1.2
"""Below LOW an event can begin a match, below HIGH it can end one, from there on it forbids."""

NEXMARK_WINDOW, NEXMARK_HOP = 10, 2
"""Seconds, of Nexmark's q5, q7 and q8."""
