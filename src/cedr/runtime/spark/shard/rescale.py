"""Another number of shards: cells move to other shards, and those that are too large are split with their state.

Nothing is read from the sources again. Every cell that is split is brought to its state after the last micro-batch, as
after a crash; each of its parts gets a folder with a snapshot of its share. Then one file is written, the new layout
(`cells`): before it the old number of shards counts, after it the new one. What the old layout needed is removed when
that is done, or at the next start.
"""

from collections.abc import Sequence
from dataclasses import replace

from cedr.operators.base import Operator
from cedr.operators.splitting import BY_START, CannotSplitError, Columns, Cut, part_of
from cedr.plan.fragment import Input, PhysicalStep
from cedr.plan.partition_requirements import carried
from cedr.plan.partitioning import Exchange, Stage, StagedPlan
from cedr.runtime.engine import Engine, State
from cedr.runtime.spark.driver.job import SparkJob
from cedr.runtime.spark.shard.cells import SPACE, Cell, Layout, SplitCell, rescaled
from cedr.runtime.spark.shard.shard import Core, Shard
from cedr.runtime.spark.shard.state import StateStore, state_folder
from cedr.storage.folder import Folder
from cedr.temporal.errors import QueryError


def rescale(job: SparkJob, shards: int, batch: int) -> SparkJob:
    """The job with another number of shards, after the last micro-batch; -1: before the first."""
    before = job.layout or Layout.first(job.shards, job.last)
    stages, splits = [], []
    for stage, cells in zip(job.plan.stages, before.stages, strict=True):
        after, split = rescaled(cells, shards, why_whole(job.plan, stage) is None)
        stages.append(after)
        splits.append(split)
    layout = Layout(shards, tuple(stages), before.version + 1, batch)
    changed = replace(job, shards=shards, layout=layout)
    for stage, of_stage in zip(job.plan.stages, splits, strict=True):
        for split_cell in of_stage:
            split_state(job, changed, stage, split_cell, batch)
    layout.write(Folder(job.folder))
    layout.remove_unused(Folder(job.folder))
    return changed


def split_state(job: SparkJob, changed: SparkJob, stage: Stage, split: SplitCell, batch: int) -> None:
    """Write the state of each part of a cell."""
    stores = {cell: StateStore(state_folder(job.folder, stage.number, cell.number)) for cell in split.parts}
    for store in stores.values():
        store.folder.remove(store.folder.names())  # of an attempt that failed
    if batch < 0:
        return  # there is no state yet
    whole = Shard(job, stage.number, split.cell.number).core_after(batch)
    if whole.entering:
        raise QueryError(
            "the query has just changed to another level of consistency, which releases rows: let it process a "
            "micro-batch before you change the number of shards"
        )
    columns = columns_of_stage(job.plan, stage)
    for cell, store in stores.items():
        part = Core(changed, stage.number, cell.number, store)
        part.load({**whole.save(), "engine": engine_part(whole.engine, stage, columns, cell)})
        store.snapshot(batch, part.save(), part.described())


def engine_part(engine: Engine, stage: Stage, columns: Sequence[Sequence[Columns]], cell: Cell) -> State:
    """The part of an engine's state that belongs to a cell."""
    state = engine.snapshot()
    operators = [
        saved if number in stage.repeated else part_of(operator, saved, Cut(cell.begin, cell.end, inputs))
        for number, (operator, saved, inputs) in enumerate(
            zip(engine.operators, state["operators"], columns, strict=True)
        )
    ]
    return {**state, "operators": operators}


# --- by what rows are partitioned ------------------------------------------------------------------------------------


def why_whole(plan: StagedPlan, stage: Stage) -> str | None:
    """Why the state of a stage cannot be split; None if it can."""
    engine = Engine(stage.fragment)
    try:
        for number, (operator, inputs) in enumerate(zip(engine.operators, columns_of_stage(plan, stage), strict=True)):
            if number not in stage.repeated:
                check_splits(operator, Cut(0, SPACE, inputs), stage.fragment.steps[number])
    except CannotSplitError as error:
        return str(error)
    return None


def whole_stages(job: SparkJob) -> list[tuple[Stage, str]]:
    """The stages that have fewer cells than there are shards, and why; a stage that always runs in one shard is not
    among them."""
    found = []
    for stage in job.plan.stages:
        spread = any(exchange.keys != () for exchange in exchanges_into(job.plan, stage))
        if spread and len(job.cells(stage.number)) < job.shards and (why := why_whole(job.plan, stage)) is not None:
            found.append((stage, why))
    return found


def check_splits(operator: Operator, cut: Cut, step: PhysicalStep) -> None:
    try:
        part_of(operator, operator.snapshot(), cut)
    except CannotSplitError as error:
        raise CannotSplitError(f"{step.node.describe()}: {error}") from None


def columns_of_stage(plan: StagedPlan, stage: Stage) -> list[list[Columns]]:
    """For each step of a stage and each of its inputs, by what its rows are partitioned."""
    found: dict[Input, Columns] = {to.name: columns_of_exchange(to) for to in exchanges_into(plan, stage)}
    inputs_of: list[list[Columns]] = []
    for number, step in enumerate(stage.fragment.steps):
        inputs = [found[origin] for origin in step.inputs]
        inputs_of.append(inputs)
        found[number] = columns_after(step, inputs)
    return inputs_of


def exchanges_into(plan: StagedPlan, stage: Stage) -> list[Exchange]:
    every = [path.exchange for path in plan.paths] + [to for s in plan.stages for _, to in s.outputs]
    return [exchange for exchange in every if exchange.stage == stage.number]


def columns_of_exchange(exchange: Exchange) -> Columns:
    if exchange.broadcast or exchange.keys == ():
        return None
    return BY_START if exchange.keys is None else tuple(frozenset((name,)) for name in exchange.keys)


def columns_after(step: PhysicalStep, inputs: list[Columns]) -> Columns:
    node = step.node
    if all(columns == BY_START for columns in inputs):
        return BY_START if node.keeps_lifetimes else None
    known = [None if isinstance(columns, str) else columns for columns in inputs]
    return carried(node, known)
