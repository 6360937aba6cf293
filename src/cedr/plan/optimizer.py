"""The optimizer: one list of rules, applied until none fires."""

from collections.abc import Callable
from typing import NamedTuple

from cedr.plan.node import Node
from cedr.plan.rules.drop_align_and_finalize import drop_align_and_finalize
from cedr.plan.rules.fuse_stateless import fuse_stateless
from cedr.plan.rules.place_consistency import place_consistency
from cedr.plan.rules.prune_columns import prune_columns
from cedr.plan.rules.push_select_below_aggregate import push_select_below_aggregate
from cedr.plan.rules.push_select_below_alter_lifetime import push_select_below_alter_lifetime
from cedr.plan.rules.push_select_below_join import push_select_below_join
from cedr.plan.rules.push_select_below_project import push_select_below_project
from cedr.plan.rules.push_select_below_union import push_select_below_union

Rule = Callable[[Node], Node]

RULES: tuple[Rule, ...] = (
    push_select_below_project,
    push_select_below_alter_lifetime,
    push_select_below_union,
    push_select_below_aggregate,
    push_select_below_join,
    prune_columns,
    place_consistency,
    drop_align_and_finalize,
    fuse_stateless,
)
"""All rules. A later one is tried only when no earlier one has anything left to do."""

REQUIRED: tuple[Rule, ...] = (place_consistency,)
"""What even an unoptimised plan needs before it can run."""


class Optimized(NamedTuple):
    plan: Node
    fired: tuple[str, ...]
    """Names of rules, in the order in which they changed the plan."""


def optimize(plan: Node, rules: tuple[Rule, ...] = RULES) -> Optimized:
    """Apply the first rule that changes the plan, and start over, until none does."""
    fired: list[str] = []
    while change := first_change(plan, rules):
        plan = change.plan
        fired += change.fired
    return Optimized(plan, tuple(fired))


def first_change(plan: Node, rules: tuple[Rule, ...]) -> Optimized | None:
    for rule in rules:
        changed = rule(plan)
        if changed is not plan:
            return Optimized(changed, (rule.__name__,))
    return None
