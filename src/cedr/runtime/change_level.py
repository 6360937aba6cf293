"""Moves the state of a running query into the operators of another consistency level.

Both fragments come from the same query, so they differ only in the operators that check and wait (Finalize, Guard,
Align) on the paths into the others. The others are matched in order and keep their state, and so do Finalize and Guard.
Every Align is flushed; its rows enter the new operators on the same path, which hold what the new level requires.

The old operators are not changed: new ones take copies of their state, and copies of the old Aligns are flushed. So a
rejected change leaves the running query as it was.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace

from cedr.columnar.chunk import Chunk, concat, empty
from cedr.operators.align import AlignOperator
from cedr.operators.base import Operator
from cedr.operators.finalize.finalize import FinalizeOperator
from cedr.operators.guard import GuardOperator
from cedr.physical import make
from cedr.plan.fragment import Fragment, Input
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, MIN

CHECKS = ("Finalize", "Guard")
WAITS = ("Align",)

Place = tuple[int, int]
"""A port of a step; the output of the fragment is port 0 of step -1."""

OUTPUT: Place = (-1, 0)


def transplant(
    old: Fragment, old_operators: list[Operator], new: Fragment, new_operators: list[Operator], highest: list[int]
) -> dict[Place, Chunk]:
    """Fill the new operators; returns the flushed rows, by the port of the new fragment that they enter.

    `highest` is the latest start each old operator has seen; a new Align counts its blocking from there.
    """
    before, after = main_steps(old), main_steps(new)
    if [old.steps[i].name for i in before] != [new.steps[i].name for i in after]:
        raise QueryError("the query has other operators at this level; restart it at the new level")
    for i, j in zip(before, after, strict=True):
        hand_over(old_operators[i], new_operators[j])
    mover = Mover(old, old_operators, new, new_operators, highest)
    return dict(
        mover.move(there, here) for there, here in zip(ports_with_paths(old), ports_with_paths(new), strict=True)
    )


def main_steps(fragment: Fragment) -> list[int]:
    return [i for i, step in enumerate(fragment.steps) if step.name not in (*CHECKS, *WAITS)]


def ports_with_paths(fragment: Fragment) -> Iterator[Place]:
    """All ports with a path into them, in an order that both fragments share."""
    for i in main_steps(fragment):
        yield from ((i, port) for port in range(len(fragment.steps[i].inputs)))
    yield OUTPUT


def checks_and_aligns_before(fragment: Fragment, place: Place) -> list[int]:
    """The checking and waiting steps that lead into a port, first to last."""
    step, port = place
    origin: Input = fragment.output if place == OUTPUT else fragment.steps[step].inputs[port]
    found: list[int] = []
    while isinstance(origin, int) and fragment.steps[origin].name in (*CHECKS, *WAITS):
        found.insert(0, origin)
        origin = fragment.steps[origin].inputs[0]
    return found


def split_at_checks(fragment: Fragment, steps: list[int]) -> tuple[list[int], list[list[int]]]:
    """The checks of a path, and the Aligns before the first, between them, and after the last."""
    checks: list[int] = []
    aligns: list[list[int]] = [[]]
    for i in steps:
        if fragment.steps[i].name in CHECKS:
            checks.append(i)
            aligns.append([])
        else:
            aligns[-1].append(i)
    return checks, aligns


def hand_over(old: Operator, new: Operator) -> None:
    new.restore(deepcopy(old.snapshot()))
    new.metrics = replace(old.metrics)


class Mover:
    """Moves the paths one by one. A step on several paths is moved once, and all of them get its rows."""

    def __init__(
        self,
        old: Fragment,
        old_operators: list[Operator],
        new: Fragment,
        new_operators: list[Operator],
        highest: list[int],
    ) -> None:
        self.old, self.new, self.highest = old, new, highest
        self.old_operators, self.new_operators = old_operators, new_operators
        self.flushed: dict[int, Chunk] = {}
        self.entered: dict[int, Chunk] = {}

    def move(self, there: Place, here: Place) -> tuple[Place, Chunk]:
        """Stretch by stretch: flush the old Aligns, let the new ones hold the rows, then pass the next check."""
        old_checks, old_aligns = split_at_checks(self.old, checks_and_aligns_before(self.old, there))
        new_checks, new_aligns = split_at_checks(self.new, checks_and_aligns_before(self.new, here))
        if [self.old.steps[i].name for i in old_checks] != [self.new.steps[j].name for j in new_checks]:
            raise QueryError("the query has other checks at this level; restart it at the new level")
        rows = empty(self.schema(here))
        seen = max(
            (self.highest[i] for i in checks_and_aligns_before(self.old, there) or there[:1] if i >= 0), default=MIN
        )
        for stretch in range(len(old_aligns)):
            rows = concat([rows, *map(self.flush, old_aligns[stretch])])
            for j in new_aligns[stretch]:
                align = self.new_operators[j]
                if isinstance(align, AlignOperator) and j not in self.entered:
                    align.note_highest(seen)
                rows = self.enter(j, rows)
            if stretch < len(old_checks):
                rows = self.check(old_checks[stretch], new_checks[stretch], rows)
        return here, rows

    def check(self, old: int, new: int, rows: Chunk) -> Chunk:
        if new not in self.entered:
            hand_over(self.old_operators[old], self.new_operators[new])
        checked, operator = self.enter(new, rows), self.new_operators[new]
        assert isinstance(operator, FinalizeOperator | GuardOperator)
        return Chunk(checked.rows, max(checked.cti, operator.cti_out), promises=operator.current_promises())

    def schema(self, here: Place) -> dict[str, object]:
        step, port = here
        node = self.new.steps[step].node.inputs[port] if here != OUTPUT else None
        return dict(node.schema if node else self.new.schema)

    def flush(self, number: int) -> Chunk:
        """All rows an old Align holds, in order, with its progress."""
        if number not in self.flushed:
            operator = make(self.old.steps[number])
            hand_over(self.old_operators[number], operator)
            cti, promised = operator.cti, operator.promised[0].all()
            rows = operator.process(0, empty(operator.schema, INF)).rows
            self.flushed[number] = Chunk(rows, cti, promises=promised)
        return self.flushed[number]

    def enter(self, number: int, rows: Chunk) -> Chunk:
        if number not in self.entered:
            self.entered[number] = self.new_operators[number].process(0, rows)
        return self.entered[number]
