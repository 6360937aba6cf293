"""The physical planner: from the steps of a plan to operators. Nothing else creates operators of plan nodes.

Operators are imported when they are made, so that a query pays for those it uses: all of them with their kernels would
add 0.1 s of CPU time (0.6 to 0.7 s) to the start of every command and every process of a cluster.
"""

from collections.abc import Sequence
from functools import partial, singledispatch
from typing import Any

import numpy as np

from cedr.columnar.times import after_lengths, shifted
from cedr.operators.base import Operator
from cedr.plan.aspects.properties import Properties
from cedr.plan.excluded import excluded
from cedr.plan.fragment import PhysicalStep, fragment_from
from cedr.plan.node import Node, topological
from cedr.plan.nodes import (
    Aggregate,
    Align,
    AlterLifetime,
    Automaton,
    Chop,
    Clip,
    Coalesce,
    Deletes,
    Difference,
    Distinct,
    Finalize,
    Fused,
    Guard,
    Hopping,
    Inserts,
    Intersect,
    Iterate,
    Join,
    Lookup,
    Match,
    Merge,
    MergeBy,
    Moving,
    Places,
    Project,
    Reach,
    Select,
    Session,
    Shift,
    Slice,
    Sliding,
    Sort,
    Speculative,
    TopK,
    Union,
)
from cedr.plan.nodes.merge import choose
from cedr.plan.optimizer import optimize
from cedr.plan.rules.drop_align_and_finalize import counts_externals
from cedr.temporal.errors import QueryError


def make(step: PhysicalStep) -> Operator:
    """A fresh operator for a step."""
    node = step.node
    operator = operator_of(node, step.known)
    operator.waits = isinstance(node, Speculative) and node.waits
    assert list(operator.schema.items()) == list(node.schema.items()), (node, operator.schema, node.schema)
    return operator


@singledispatch
def operator_of(node: Node, known: Sequence[Properties]) -> Operator:
    """A fresh operator; `known` are the properties of the inputs."""
    raise NotImplementedError(f"no operator for {type(node).__name__}")


@operator_of.register
def _(node: Select, known: Sequence[Properties]) -> Operator:
    from cedr.operators.stateless import SelectOperator

    return SelectOperator(node.schema, node.predicate, excluded(node.predicates, node.schema))


@operator_of.register
def _(node: Project, known: Sequence[Properties]) -> Operator:
    from cedr.operators.stateless import ProjectOperator

    return ProjectOperator(node.input.schema, node.expressions)


@operator_of.register
def _(node: Union, known: Sequence[Properties]) -> Operator:
    from cedr.operators.stateless import UnionOperator

    return UnionOperator(node.schema, len(node.members))


@operator_of.register
def _(node: Merge, known: Sequence[Properties]) -> Operator:
    from cedr.operators.merge.algorithms import ALGORITHMS

    algorithm = choose(known, node.policy, node.algorithm).algorithm
    return ALGORITHMS[algorithm](node.schema, len(node.members), node.policy)


@operator_of.register
def _(node: MergeBy, known: Sequence[Properties]) -> Operator:
    from cedr.operators.merge.by_column import MergeByOperator

    algorithm = node.chosen(known[0]).algorithm
    return MergeByOperator(node.input.schema, node.column, node.join, node.policy, algorithm, node.wrong)


@operator_of.register
def _(node: Iterate, known: Sequence[Properties]) -> Operator:
    from cedr.operators.iterate.body import Body
    from cedr.operators.iterate.iterate import IterateOperator

    plan = optimize(node.body).plan
    fragment, _ = fragment_from(topological(plan), plan)
    steps = fragment.steps
    body = Body([make(s) for s in steps], [s.inputs for s in steps], fragment.output, node.names)
    return IterateOperator(node.schema, body, node.settings)


@operator_of.register
def _(node: Reach, known: Sequence[Properties]) -> Operator:
    from cedr.operators.reach import ReachOperator

    return ReachOperator(node.schema, (node.start, node.end), node.node)


@operator_of.register
def _(node: Sliding, known: Sequence[Properties]) -> Operator:
    from cedr.operators import windows

    return windows.sliding(node.schema, node.length)


@operator_of.register
def _(node: Moving, known: Sequence[Properties]) -> Operator:
    from cedr.operators import windows

    return windows.moving(node.schema, node.length)


@operator_of.register
def _(node: Hopping, known: Sequence[Properties]) -> Operator:
    from cedr.operators import windows

    if node.calendar is not None:
        return windows.calendar_windows(node.schema, node.calendar)
    return windows.hopping(node.schema, node.size, node.hop, node.offset)


@operator_of.register
def _(node: Inserts, known: Sequence[Properties]) -> Operator:
    from cedr.operators import windows

    return windows.inserts(node.schema)


@operator_of.register
def _(node: Deletes, known: Sequence[Properties]) -> Operator:
    from cedr.operators.windows import DeletesOperator

    return DeletesOperator(node.schema)


@operator_of.register
def _(node: Shift, known: Sequence[Properties]) -> Operator:
    from cedr.operators.stateless import AlterLifetimeOperator

    return AlterLifetimeOperator(node.schema, partial(shifted, by=node.by), lambda vs, ve: shifted(ve, node.by))


@operator_of.register
def _(node: Slice, known: Sequence[Properties]) -> Operator:
    from cedr.operators import windows

    return windows.sliced(node.schema, node.start, node.end)


@operator_of.register
def _(node: AlterLifetime, known: Sequence[Properties]) -> Operator:
    from cedr.operators.stateless import AlterLifetimeOperator

    return AlterLifetimeOperator(node.schema, partial(altered_start, node), partial(altered_end, node), node.progress)


@operator_of.register
def _(node: Fused, known: Sequence[Properties]) -> Operator:
    from cedr.operators.fused import FusedOperator

    return FusedOperator(node.input.schema, [operator_of(step, ()) for step in node.steps])


@operator_of.register
def _(node: Chop, known: Sequence[Properties]) -> Operator:
    from cedr.operators.chop import ChopOperator

    return ChopOperator(node.schema, node.period, node.offset, node.calendar)


@operator_of.register
def _(node: Aggregate, known: Sequence[Properties]) -> Operator:
    from cedr.operators.aggregate import AggregateOperator

    aggregates = dict(node.aggregates)
    return AggregateOperator(
        node.input.schema, list(node.by), aggregates, node.latency or "perfect", known[0].insert_only
    )


@operator_of.register
def _(node: TopK, known: Sequence[Properties]) -> Operator:
    from cedr.operators.top_k import TopKOperator

    order, by = list(node.order), list(node.by)
    return TopKOperator(
        node.input.schema, node.k, order, list(node.descending), by, node.rank, node.latency or "perfect"
    )


@operator_of.register
def _(node: Distinct, known: Sequence[Properties]) -> Operator:
    from cedr.operators.levels import DistinctOperator

    return DistinctOperator(node.schema, node.latency or "perfect")


@operator_of.register
def _(node: Coalesce, known: Sequence[Properties]) -> Operator:
    from cedr.operators.levels import CoalesceOperator

    return CoalesceOperator(node.schema, node.latency or "perfect")


@operator_of.register
def _(node: Difference, known: Sequence[Properties]) -> Operator:
    from cedr.operators.levels import DifferenceOperator

    return DifferenceOperator(node.schema, node.latency or "perfect")


@operator_of.register
def _(node: Intersect, known: Sequence[Properties]) -> Operator:
    from cedr.operators.levels import IntersectOperator

    return IntersectOperator(node.schema, node.latency or "perfect")


@operator_of.register
def _(node: Join, known: Sequence[Properties]) -> Operator:
    sides = node.left.schema, node.right.schema, list(node.left_on), list(node.right_on)
    if node.how == "inner":
        from cedr.operators.join import JoinOperator

        return JoinOperator(*sides, node.residual, node.suffix)
    from cedr.operators.outer_join import OuterJoinOperator

    return OuterJoinOperator(*sides, node.how, node.residual, node.suffix, node.latency or "perfect")


@operator_of.register
def _(node: Clip, known: Sequence[Properties]) -> Operator:
    from cedr.operators.clip import ClipOperator

    return ClipOperator(node.left.schema, node.right.schema, list(node.left_on), list(node.right_on))


@operator_of.register
def _(node: Session, known: Sequence[Properties]) -> Operator:
    from cedr.operators.session import SessionOperator

    return SessionOperator(node.schema, node.timeout, list(node.by))


@operator_of.register
def _(node: Sort, known: Sequence[Properties]) -> Operator:
    from cedr.operators.sort import SortOperator

    return SortOperator(node.schema, node.by, node.descending)


@operator_of.register
def _(node: Match, known: Sequence[Properties]) -> Operator:
    from cedr.operators.patterns.bitemporal import BitemporalMatchOperator
    from cedr.operators.patterns.matcher import MatchOperator
    from cedr.operators.patterns.single import SingleEventOperator

    schemas = [m.schema for m in node.members]
    if node.of_single_events:
        return SingleEventOperator(len(schemas), node.pattern, node.where, node.outputs, node.schema)
    arguments = schemas, node.pattern, node.where, node.outputs, node.schema, node.latency or "perfect"
    return BitemporalMatchOperator(*arguments) if node.bitemporal else MatchOperator(*arguments, node.outputs_of_key)


@operator_of.register
def _(node: Automaton, known: Sequence[Properties]) -> Operator:
    from cedr.operators.automata.automaton import AutomatonOperator

    table = node.fixed if node.fixed is not None else node.table
    return AutomatonOperator(
        node.events.schema, tuple(node.steps_read()), table, node.compiled, node.shape, node.schema
    )


@operator_of.register
def _(node: Places, known: Sequence[Properties]) -> Operator:
    from cedr.operators.automata.places import PlacesOperator

    return PlacesOperator(node.input.schema, node.by, node.order, node.linked)


@operator_of.register
def _(node: Lookup, known: Sequence[Properties]) -> Operator:
    from cedr.operators.lookup import LookupOperator

    return LookupOperator(node.input.schema, node.table, node.left_on, node.right_on)


@operator_of.register
def _(node: Align, known: Sequence[Properties]) -> Operator:
    from cedr.operators.align import AlignOperator

    return AlignOperator(node.schema, node.block, node.flavour, node.clock, node.by)


@operator_of.register
def _(node: Finalize, known: Sequence[Properties]) -> Operator:
    from cedr.operators.finalize.finalize import FinalizeOperator

    return FinalizeOperator(
        node.schema, node.remember, node.late, known[0].insert_only, external=counts_externals(node)
    )


@operator_of.register
def _(node: Guard, known: Sequence[Properties]) -> Operator:
    from cedr.operators.guard import GuardOperator

    return GuardOperator(node.schema, node.late)


# --- lifetimes a user wrote ----------------------------------------------------------------------------------------


def altered_start(node: AlterLifetime, vs: Any) -> Any:
    start = node.start(vs)
    order = np.argsort(vs, kind="stable")
    falls = start[order][1:] < start[order][:-1]
    if falls.any():
        at = int(np.argmax(falls))
        one, two = order[at], order[at + 1]
        raise QueryError(
            f"{node.text} moves start {vs[one]} to {start[one]} but the later {vs[two]} to {start[two]}; "
            "the start must not decrease"
        )
    return start


def altered_end(node: AlterLifetime, vs: Any, ve: Any) -> Any:
    """Rows that are empty on this side (`ve = vs`) have no length to ask for; their answer is not used."""
    real = ve > vs
    start, length = node.start(vs), np.ones(len(vs), dtype=np.uint64)
    length[real] = node.duration(vs[real], ve[real])
    return after_lengths(start, length)
