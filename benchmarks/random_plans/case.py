"""A case: tables, a plan and how the rows are cut into chunks; run it, and report what differs."""

import pickle
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

import cedr
from cedr.runtime.local import LocalRun
from cedr.runtime.result import Result
from random_plans import as_query, expected
from random_plans.compare import answered, difference
from random_plans.draw import Drawing, draw_shape
from random_plans.tables import INF, Shape, Table, make

SINGLE = 150
"""The number of rows of each source that arrive one by one when a case is sliced "mixed"."""
LARGE = 500_000
"""From here on plans are flatter: each node takes seconds."""
BETWEEN = 20_000
"""The size of the chunks before and after them."""


@dataclass
class Case:
    """`slicing` is a chunk size, 0 for all rows at once, or "mixed": single rows in the middle of larger chunks."""

    seed: int
    shape: Shape
    tables: dict[str, Table]
    plan: list[dict[str, Any]]
    slicing: int | str
    settings: dict[str, Any] = field(default_factory=dict)
    wanted: pl.DataFrame | None = None
    """The expected table, if it is known already."""

    @property
    def rows(self) -> int:
        return sum(t.delivered.height for t in self.tables.values())

    @property
    def soft(self) -> list[str]:
        return self.plan[-1].get("soft", [])

    def __str__(self) -> str:
        what = f"seed {self.seed}, {self.rows:,} rows delivered, slicing {self.slicing}, {self.settings}"
        return "\n".join([what, str(self.shape), *(f"  {i}: {node}" for i, node in enumerate(self.plan))])


def draw(seed: int, rows: int, slicing: int | str) -> Case:
    """The case of a seed; `rows` is the number of rows of each source before corrections."""
    rng = np.random.default_rng(seed)
    shape = draw_shape(rng, rows)
    tables = {name: make(shape, rng) for name in ("AB" if rng.random() < 0.6 else "A")}
    drawing = Drawing(rng, shape, tables)
    made = drawing.grow(drawing.one_of([1, 2, 3, 3, 4, 4, 5, 5] if rows < LARGE else [1, 2, 2, 3, 3, 4, 5]))
    plan = pruned(drawing.plan, made.place)
    settings = {"level": drawing.one_of([None, None, "strong", "middle"])}
    settings["latency"] = drawing.one_of([None, None, "ordered", "eager"])
    settings["block"] = drawing.length(1, 100) if settings["level"] is None and drawing.chance(0.2) else None
    settings["restart"] = drawing.chance(0.2) or None
    used = {node["name"] for node in plan if node["op"] == "source"}
    return Case(seed, shape, {n: t for n, t in tables.items() if n in used}, plan, slicing, settings, made.frame)


def pruned(plan: list[dict[str, Any]], root: int) -> list[dict[str, Any]]:
    """Only what the root needs, in the same order."""
    needed = {root}
    for place in range(root, -1, -1):
        if place in needed:
            needed |= set(plan[place].get("of", ()))
    places = {old: new for new, old in enumerate(sorted(needed))}
    return [
        {**plan[old], "of": [places[i] for i in plan[old]["of"]]} if "of" in plan[old] else plan[old] for old in places
    ]


def pieces(case: Case) -> Iterator[dict[str, pl.DataFrame]]:
    """The tables, in the pieces in which the query gets them."""
    tables = {name: table.delivered for name, table in case.tables.items()}
    if case.slicing != "mixed":
        yield tables
        return
    middle = {name: table.height // 2 for name, table in tables.items()}
    yield {name: table[: middle[name]] for name, table in tables.items()}
    for i in range(SINGLE):
        for name, table in tables.items():
            if middle[name] + i < table.height:
                yield {name: table[middle[name] + i : middle[name] + i + 1]}
    yield {name: table[middle[name] + SINGLE :] for name, table in tables.items()}


def chunk_size(case: Case) -> int:
    return BETWEEN if case.slicing == "mixed" else int(case.slicing) or max(case.rows, 1)


def run_cedr(case: Case) -> pl.DataFrame:
    stream = as_query.settled(as_query.query(case.plan, case.shape), case.settings)
    if case.settings.get("restart"):
        result = restarted(stream, case)
    else:
        result = stream.run(pieces(case), chunk_size=chunk_size(case))
    if (late := result.late()).height:
        raise AssertionError(f"{late.height} rows were late, such as {late.head(1).to_dicts()}")
    return answered(result.table(), as_query.time_type(case.shape))


def restarted(stream: cedr.Stream, case: Case) -> Result:
    """The same, but after the second chunk, and after the tenth, a new engine goes on from a snapshot."""
    run = LocalRun(stream.fragment(), chunk_size(case), patience=INF)
    chunks = []
    for number, chunk in enumerate(run.steps(pieces(case), close=True), start=1):
        chunks.append(chunk)
        if number in (2, 10):
            state = pickle.loads(pickle.dumps(run.engine.snapshot()))
            run.engine = stream.engine()
            run.engine.restore(state)
    return run.result(chunks)


def expect(case: Case) -> pl.DataFrame:
    return expected.answer(case.plan, {name: table.canonical for name, table in case.tables.items()})


def failure(case: Case) -> str | None:
    """What is wrong with cedr's answer, or None."""
    wanted = expect(case) if case.wanted is None else case.wanted
    try:
        found = run_cedr(case)
    except Exception as e:  # whatever it is, it is a finding
        return f"exception {type(e).__name__}: {traceback.format_exc()}"
    return difference(wanted, found, case.soft)
