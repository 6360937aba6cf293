"""From matches to payloads: the columns that OUTPUT reads, gathered for the matches that are emitted or retracted.

`cbt` is the lineage: the events a match is made of, in the order of time, as a list of type, id and start.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from cedr.columnar.chunk import Times
from cedr.kernels.instances import expanded
from cedr.operators.patterns.evaluation import Evaluation
from cedr.operators.patterns.instances import Columns, Instances
from cedr.operators.patterns.questions import names_in
from cedr.plan.patterns.outputs import LINEAGE, Outputs
from cedr.plan.patterns.parts import PatternPart
from cedr.plan.patterns.tree import EventType


class Rendering:
    def __init__(self, root: PatternPart, outputs: Outputs) -> None:
        self.root = root
        self.names = [name for name, _ in outputs]
        self.expressions = [e.alias(name) for name, e in outputs]
        self.reads = list(dict.fromkeys(name for _, e in outputs for name in names_in(e)))

    def payload(self, evaluation: Evaluation, found: Instances, ve: Times) -> pl.DataFrame:
        columns = [self._column(name, evaluation, found, ve) for name in dict.fromkeys(("Vs", *self.reads))]
        return pl.DataFrame(columns).with_columns(self.expressions).select(self.names)

    def _column(self, name: str, evaluation: Evaluation, found: Instances, ve: Times) -> pl.Series:
        headers = evaluation.headers
        match name:
            case "Vs":
                return pl.Series(name, found.vs)
            case "Ve":
                return pl.Series(name, ve)
            case "Rt":
                return pl.Series(name, headers.root(self.root, found.columns))
            case "Id":
                return pl.Series(name, headers.id(self.root, found.columns))
            case "cbt":
                return self._lineage(evaluation, found).alias(name)
        part = evaluation.questions.variables[name.partition(".")[0]]
        present = headers.present(part, found.columns)
        if present.all():
            return evaluation.questions.column(name, found.columns)
        there = {c: found.columns[c][present] for c in part.columns()}
        places = pl.Series(np.where(present, np.cumsum(present) - 1, -1))
        known = evaluation.questions.column(name, there)
        return known.gather(places.replace(-1, None)).alias(name)

    def _lineage(self, evaluation: Evaluation, found: Instances) -> pl.Series:
        pieces = list(contributors(evaluation, self.root, found.columns, np.arange(len(found))))
        table = pl.concat(pieces).sort("row", "vs", "id")
        lists = table.group_by("row", maintain_order=True).agg(pl.struct("type", "id", "vs").alias("cbt"))
        return lists["cbt"].cast(LINEAGE)


def contributors(evaluation: Evaluation, part: PatternPart, columns: Columns, rows: Times) -> Iterator[pl.DataFrame]:
    """The events in instances, each with the row it belongs to."""
    headers = evaluation.headers
    for leaf in part.positive_leaves():
        there = columns[leaf.leaf] >= 0
        own: Columns = {leaf.leaf: columns[leaf.leaf][there]}
        assert isinstance(leaf.pattern, EventType)
        yield pl.DataFrame(
            {"row": rows[there], "id": headers.id(leaf, own), "vs": headers.start(leaf, own)}
        ).with_columns(pl.lit(leaf.pattern.name).alias("type"))
    for counting in part.counting():
        members = evaluation.members[counting.number]
        low, high = columns[counting.number, "low"], columns[counting.number, "high"]
        which, places = expanded(low, np.where(low >= 0, high, low))
        for counted in counting.counted:
            its = {c: members.columns[c][places] for c in counted.columns()}
            yield from contributors(evaluation, counted, its, rows[which])
