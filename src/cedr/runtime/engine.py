"""The engine: one fragment of a plan, fed with chunks.

`push` sends a chunk of one source through the operators in topological order, `feed` chunks of several at once. An
operator is called once per chunk and port; the outputs of its ports are joined into one chunk. Between two pushes the
engine is at rest: it can be saved and restored elsewhere, and it can change its consistency level.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

import polars as pl

from cedr.columnar.chunk import Chunk, concat, empty
from cedr.columnar.mapped import MEMORY
from cedr.operators.align import AlignOperator
from cedr.operators.base import Operator, OperatorMetrics
from cedr.operators.feedback import GivesFeedback, judged_below, skip_before
from cedr.operators.iterate.metrics import LoopMetrics
from cedr.operators.merge.base import LMerge
from cedr.physical import make
from cedr.plan.fragment import Fragment, Input
from cedr.runtime.change_level import OUTPUT, Place, transplant
from cedr.runtime.metrics import loop_table, metrics_table
from cedr.temporal.consistency import Consistency
from cedr.temporal.errors import QueryError
from cedr.temporal.time import MIN

State = dict[str, Any]
NOTHING: Mapping[Place, Chunk] = MappingProxyType({})


class Engine:
    def __init__(self, fragment: Fragment) -> None:
        self.fragment = fragment
        self.operators: list[Operator] = [make(step) for step in fragment.steps]
        self.highest = [MIN] * len(self.operators)
        """The highest start each operator has seen."""
        self.users = Counter([fragment.output, *(origin for step in fragment.steps for origin in step.inputs)])
        """Number of consumers of a source or step; rows with two consumers must not be skipped for one of them."""

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return self.fragment.schema

    def push(self, source: str, chunk: Chunk) -> Chunk:
        """The changes of the answer after the next chunk of a source."""
        return self._answer(self.feed({source: chunk}))

    def feed(self, arrived: Mapping[str, Chunk], entering: Mapping[Place, Chunk] = NOTHING) -> dict[Input, Chunk]:
        """Take the next chunks of some sources; returns the output of each source and step, by its name or number.

        Steps without input are omitted. A chunk whose CTI is MIN promises nothing new. `entering` is additional input
        of single ports.
        """
        chunks: dict[Input, Chunk] = {}
        for source, chunk in arrived.items():
            if source not in self.fragment.sources:
                names = ", ".join(map(repr, self.fragment.sources))
                raise QueryError(f"this query has no source {source!r}; its sources are {names}")
            chunks[source] = chunk
        return self._run(chunks, entering)

    def tick(self) -> Chunk:
        """The changes because time has passed: rows that an Align with a clock has held long enough."""
        ticking = [(i, op) for i, op in enumerate(self.operators) if isinstance(op, AlignOperator) and op.clock]
        return self._answer(self._run({i: op.tick() for i, op in ticking}))

    def _run(self, arrived: dict[Input, Chunk], entering: Mapping[Place, Chunk] = NOTHING) -> dict[Input, Chunk]:
        """`arrived`: output of sources and steps. `entering`: additional input of single ports."""
        for number, step in enumerate(self.fragment.steps):
            outputs = [arrived[number]] if number in arrived else []
            for port, origin in enumerate(step.inputs):
                waiting = [entering.get((number, port)), arrived.get(origin)]
                outputs += [self._process(number, port, chunk) for chunk in waiting if chunk is not None]
            if outputs:
                arrived[number] = concat(outputs)
                if isinstance(operator := self.operators[number], GivesFeedback):
                    self._feed_back(number, operator.feedback())
        MEMORY.note(self, sum([operator.metrics.state_bytes for operator in self.operators]))
        MEMORY.trim()
        return arrived

    def skip_before(self, t: int) -> None:
        """The consumer no longer needs rows with both ends before t, so they are not computed any more.

        For a merge in another process, with other plans for this query: the value of its `feedback()`.
        """
        if t != MIN:
            self._skip(self.fragment.output, t)

    def _feed_back(self, number: int, t: int, judged: bool = True) -> None:
        """Report to the inputs of a step, and theirs, that it no longer needs rows with both ends before t."""
        if t != MIN:
            for origin in self.fragment.steps[number].inputs:
                self._skip(origin, t, judged)

    def _skip(self, origin: Input, t: int, judged: bool = True) -> None:
        """`judged`: there is no Finalize in between, so that no row can break a promise."""
        if isinstance(origin, int) and self.users[origin] == 1:
            operator = self.operators[origin]
            self._feed_back(origin, skip_before(operator, t, judged), judged_below(operator, judged))

    def _answer(self, arrived: dict[Input, Chunk], entering: Mapping[Place, Chunk] = NOTHING) -> Chunk:
        last = [c for c in (entering.get(OUTPUT), arrived.get(self.fragment.output)) if c is not None]
        return concat(last) if last else empty(self.schema)

    def _process(self, number: int, port: int, chunk: Chunk) -> Chunk:
        if len(chunk):
            self.highest[number] = max(self.highest[number], int(chunk.vs.max()))
        return self.operators[number].process(port, chunk)

    @property
    def merges(self) -> list[LMerge]:
        """The merges of the query, inner ones first: their inputs can be detached and attached while it runs."""
        return [op for op in self.operators if isinstance(op, LMerge)]

    def take_late(self, reported_elsewhere: Collection[Input] = ()) -> pl.DataFrame:
        """Late rows since the last call, with the reason; different paths may have different columns."""
        taken = {number: op.take_late() for number, op in enumerate(self.operators) if hasattr(op, "take_late")}
        found = [frame for number, frame in taken.items() if frame.height and number not in reported_elsewhere]
        return pl.concat(found, how="diagonal_relaxed") if found else pl.DataFrame()

    def metrics(self) -> pl.DataFrame:
        """One row per operator; see `cedr.runtime.metrics`."""
        return metrics_table(self.fragment.steps, self.operators, self.highest)

    def loop_metrics(self) -> pl.DataFrame:
        """One row per loop; see `LoopMetrics`."""
        found = {number: getattr(op, "loop_metrics", None) for number, op in enumerate(self.operators)}
        return loop_table({number: m for number, m in found.items() if isinstance(m, LoopMetrics)})

    # --- saving and restoring ------------------------------------------------------------------------------------

    def snapshot(self) -> State:
        """Everything needed to continue in a new engine of the same fragment."""
        return {
            "steps": [step.name for step in self.fragment.steps],
            "operators": [op.snapshot() for op in self.operators],
            "metrics": [asdict(op.metrics) for op in self.operators],
            "highest": list(self.highest),
        }

    def restore(self, state: State) -> None:
        steps = [step.name for step in self.fragment.steps]
        if state["steps"] != steps:
            raise QueryError(
                f"the snapshot is of another query: it has the steps {', '.join(state['steps'])}, "
                f"this one has {', '.join(steps)}"
            )
        for op, saved, counted in zip(self.operators, state["operators"], state["metrics"], strict=True):
            op.restore(saved)
            op.metrics = OperatorMetrics(**counted)
        self.highest = list(state["highest"])

    # --- consistency ---------------------------------------------------------------------------------------------

    def set_consistency(self, consistency: Consistency) -> Chunk:
        """Continue at another level; returns the rows that a shorter block releases.

        Call it at a sync point: between two pushes, when everything that arrived lies before everything still to
        come. From then on the answer is the same as if the query had always had the new level. Operators keep their
        state, rows held back stay held or are released as the new level requires, and a query that forgot something
        at a low level does not get it back. A change that raises has no effect.
        """
        fresh = Engine(self.fragment.at_level(consistency))
        freed = transplant(self.fragment, self.operators, fresh.fragment, fresh.operators, self.highest)
        fresh.highest = [max(self.highest, default=MIN)] * len(fresh.operators)
        answer = fresh._answer(fresh._run({}, freed), freed)
        self.fragment, self.operators, self.users = fresh.fragment, fresh.operators, fresh.users
        self.highest = fresh.highest
        return answer
