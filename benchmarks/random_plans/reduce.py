"""A failing case made small: a smaller plan, fewer rows, simpler settings, as long as it fails in the same way."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from random_plans.case import Case, failure, pruned
from random_plans.kept import with_rows

Log = Callable[[str], None]


def signature(found: str | None) -> str | None:
    """The way in which a case fails: which exception with which message, or that answers differ."""
    if found is None:
        return None
    if not found.startswith("exception"):
        return "difference"
    message = found.strip().splitlines()[-1]
    return " ".join(part for part in message.split()[:6] if part.isalpha() or part.endswith(":"))


def outcome(case: Case) -> str | None:
    try:
        return signature(failure(case))
    except Exception:  # no valid plan any more, also for the programs that cedr is compared with
        return None


def reduced(case: Case, seconds: float = 120.0, log: Log = lambda text: None) -> Case:
    """The smallest failing case found in this time."""
    wanted, end = outcome(replace(case, wanted=None)), time.monotonic() + seconds
    if wanted is None:
        return case
    improved = True
    while improved and time.monotonic() < end:
        improved = False
        for candidate in candidates(case):
            if time.monotonic() > end:
                break
            if outcome(candidate) == wanted:
                case, improved = candidate, True
                log(f"reduced to {len(case.plan)} nodes, {case.rows:,} rows")
                break
    return case


def candidates(case: Case) -> Iterator[Case]:
    """Smaller cases, the smallest first."""
    yield from smaller_plans(case)
    yield from fewer_rows(case)
    yield from simpler(case)


def smaller_plans(case: Case) -> Iterator[Case]:
    for place in range(len(case.plan) - 1):
        yield with_plan(case, case.plan[: place + 1], place)
    for place in range(len(case.plan) - 1, -1, -1):
        for instead in case.plan[place].get("of", ()):
            if place == len(case.plan) - 1:
                continue
            plan = [
                {**node, "of": [instead if i == place else i for i in node["of"]]} if "of" in node else node
                for node in case.plan
            ]
            yield with_plan(case, plan, len(plan) - 1)


def with_plan(case: Case, plan: list[dict], root: int) -> Case:
    plan = pruned(plan, root)
    used = {node["name"] for node in plan if node["op"] == "source"}
    return replace(case, plan=plan, tables={n: t for n, t in case.tables.items() if n in used}, wanted=None)


def fewer_rows(case: Case) -> Iterator[Case]:
    """Without a part of the events of one source; rows about the same event go together."""
    for name, table in case.tables.items():
        rows = table.delivered
        about = ["vs", *(c for c in case.shape.columns if c in rows.columns)]
        events = rows.select(about).with_row_index("n").select(pl.col("n").first().over(about)).to_series().to_numpy()
        different = np.unique(events)
        parts = 2
        while parts <= min(len(different), 64):
            for gone in np.array_split(different, parts):
                kept = rows.filter(pl.Series(~np.isin(events, gone)))
                yield with_rows(case, {**{n: t.delivered for n, t in case.tables.items()}, name: kept})
            parts *= 2


def simpler(case: Case) -> Iterator[Case]:
    for key, value in case.settings.items():
        if value is not None:
            yield replace(case, settings={**case.settings, key: None})
    if case.slicing not in (0, 1):
        yield replace(case, slicing=0)
        if case.rows <= 2_000:
            yield replace(case, slicing=1)
    used = str(case.plan)
    for column in case.shape.columns:
        if f"'{column}'" not in used and len(case.shape.columns) > 1:
            yield without_column(case, column)


def without_column(case: Case, column: str) -> Case:
    shape = replace(case.shape, columns=tuple(c for c in case.shape.columns if c != column))
    return with_rows(replace(case, shape=shape), {n: t.delivered.drop(column) for n, t in case.tables.items()})
