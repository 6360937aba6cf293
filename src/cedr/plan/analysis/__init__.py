"""Will it finish? What each operator of a plan waits for and what bounds its state, found before anything runs.

Nodes state which promises they require; `findings` compares this with what can come, `advice` names what would help,
`warning` informs the user.
"""

from cedr.plan.analysis.findings import Finding, Findings, analyse

__all__ = ["Finding", "Findings", "analyse"]
