"""Will it finish? What each operator of a plan waits for and what bounds its state, found before anything runs.

`needs` says what an operator must be promised, `findings` compares it with what can come, `advice` says what would
help, `warning` tells the user.
"""

from cedr.plan.analysis.findings import Finding, Findings, analyse

__all__ = ["Finding", "Findings", "analyse"]
