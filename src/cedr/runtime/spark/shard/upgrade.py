"""The state of a shard moves to the operators of a changed query, when it is read from a snapshot of the query before.

Nothing is written for that: the record of the plan (`plan-2`, `plan-3`, ...) has the micro-batch after which the query
was changed, and which operator takes the state of which. A snapshot names the version of the plan that wrote it, so
state is moved once. Operators that look at one row at a time start empty if they are new; they get the progress of
their inputs.
"""

from typing import TYPE_CHECKING, Any

from cedr.columnar.chunk import Chunk, empty
from cedr.operators.align import AlignOperator
from cedr.operators.base import OperatorMetrics
from cedr.operators.finalize.finalize import FinalizeOperator
from cedr.operators.guard import GuardOperator
from cedr.physical import make
from cedr.plan.changes import FIRST_VERSION, RESULT, StageUpgrade, Upgrade
from cedr.plan.fragment import Input
from cedr.runtime.change_level import OUTPUT, Place
from cedr.temporal.time import INF, MIN

if TYPE_CHECKING:
    from cedr.runtime.spark.shard.shard import Core


def plan_version(state: Any) -> int:
    """Of the plan that wrote a snapshot; without one, or in one of an earlier version of cedr, it is the first."""
    found = state.get("plan", FIRST_VERSION) if isinstance(state, dict) else FIRST_VERSION
    return int(found)


def take_over(core: "Core", state: dict[str, Any], upgrade: Upgrade) -> None:
    """Continue from the state of the query before."""
    moved = upgrade.stages[core.stage.number - 1]
    core.load_progress(state)
    core.ctis_out.update({now: state["ctis_out"][b] for b, now in moved.outputs if b in state["ctis_out"]})
    move_states(core, state["engine"], moved)
    core.entering = released(core, state["engine"], moved)
    for number, before in enumerate(moved.steps):
        if before is None:
            begin(core, number, state["engine"], moved)


def move_states(core: "Core", saved: dict[str, Any], moved: StageUpgrade) -> None:
    from cedr.operators.aggregate import AggregateOperator  # few queries need it

    engine = core.engine
    for number, before in enumerate(moved.steps):
        if before is None:
            continue
        operator, its_state = engine.operators[number], saved["operators"][before]
        if number in moved.aggregates:
            assert isinstance(operator, AggregateOperator)
            operator.take_over(its_state, moved.aggregates[number])
        else:
            operator.restore(its_state)
        operator.metrics = OperatorMetrics(**saved["metrics"][before])
        engine.highest[number] = saved["highest"][before]


def released(core: "Core", saved: dict[str, Any], moved: StageUpgrade) -> dict[Place, Chunk]:
    """The rows that operators held back which are gone, by the port that they enter."""
    found: dict[Place, Chunk] = {}
    for before, step, port, by in moved.released:
        node = core.engine.fragment.steps[step].node.inputs[port] if step != RESULT else None
        schema = dict(node.schema if node else core.engine.schema)
        align = AlignOperator(schema, by=by)
        align.restore(saved["operators"][before])
        cti, promised = align.cti, align.promised[0].all()
        rows = align.process(0, empty(schema, INF)).rows
        found[OUTPUT if step == RESULT else (step, port)] = Chunk(rows, cti, promises=promised)
    return found


def begin(core: "Core", number: int, saved: dict[str, Any], moved: StageUpgrade) -> None:
    """An operator that is new knows how far its inputs are, and which times have passed."""
    step, operator = core.engine.fragment.steps[number], core.engine.operators[number]
    seen = max((saved["highest"][b] for b in moved.steps if b is not None), default=MIN)
    if isinstance(operator, AlignOperator):
        operator.note_highest(seen)
    checks = isinstance(operator, FinalizeOperator | GuardOperator | AlignOperator)
    informed = operator if checks else make(step)  # what a `where` promises of itself is still to come
    for port, origin in enumerate(step.inputs):
        if (cti := progress_of(core, origin)) != MIN:
            informed.process(port, empty(dict(step.node.inputs[port].schema), cti))
    operator.ctis, operator.cti_out = informed.ctis, informed.cti_out


def progress_of(core: "Core", origin: Input) -> int:
    if isinstance(origin, int):
        return core.engine.operators[origin].cti_out
    return core.upstream[origin].cti if origin in core.upstream else core.ctis_in[origin]
