"""Phrases that `explain` uses for several nodes."""

from collections.abc import Sequence

from cedr.plan.aspects.properties import Properties

NO_STATE = "no state"


def by(columns: Sequence[str]) -> str:
    return f" by {', '.join(columns)}" if columns else ""


def pairs(left: Sequence[str], right: Sequence[str]) -> str:
    both = zip(left, right, strict=True)
    return ", ".join(one if one == two else f"{one} = {two}" for one, two in both)


def on(left: Sequence[str], right: Sequence[str]) -> str:
    return f" on {pairs(left, right)}" if left else ""


def ordering(columns: Sequence[str], descending: Sequence[bool]) -> str:
    return ", ".join(f"{c} {'desc' if d else 'asc'}" for c, d in zip(columns, descending, strict=True))


def latency(value: str | None) -> str:
    return f" ({value})" if value else ""


def promises(schemes: Sequence[Sequence[str]]) -> str:
    return f", promises about {' and about '.join(', '.join(columns) for columns in schemes)}" if schemes else ""


def bounded(text: str, known: Sequence[Properties]) -> str:
    return text if all(p.finite for p in known) else f"{text}; rows without end stay for ever"
