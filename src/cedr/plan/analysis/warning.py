"""Warnings when a query starts that may run for ever and would then never emit, or only grow."""

import warnings

from cedr.plan.analysis.findings import Finding, analyse
from cedr.plan.nodes.level import Level
from cedr.plan.optimizer import optimize
from cedr.temporal.errors import CedrWarning


def warn_of_findings(query: Level, stacklevel: int = 1) -> None:
    """One warning for each thing that is missing, with the operators that miss it."""
    for text in warnings_of(query):
        warnings.warn(text, CedrWarning, stacklevel=stacklevel + 1)


def warnings_of(query: Level) -> list[str]:
    """The same as texts."""
    concerned: dict[tuple[str, ...], list[Finding]] = {}
    for finding in analyse(optimize(query).plan):
        if finding.missing:
            concerned.setdefault(finding.missing, []).append(finding)
    return [
        f"{'; '.join(missing)}. Now: {'; '.join(f'{f.node.describe()}: {f}' for f in findings)}"
        for missing, findings in concerned.items()
    ]
