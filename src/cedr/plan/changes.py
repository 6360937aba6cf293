"""A changed query compared with the one that a checkpoint belongs to: whose state is whose, and what follows from that.

A query goes on with its checkpoint if all its operators with state are there, by their identity and in the same stage,
and no other ones. `problems` are the reasons why it cannot. `consequences` are what a user has to accept, because rows
before the change were treated by the query before. Without either, the result is what it would be anyway.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

from cedr.plan.fragment import Input
from cedr.plan.identity import CHECK, STATE, WAIT, OperatorRecord, PlanRecord, PortRecord

RESULT = -1
"""The number of the step that takes the result."""
FIRST_VERSION = 1
"""Of the plan of a checkpoint whose query was never changed."""


class ReleasedRows(NamedTuple):
    """The step before that held rows back; the step and port that take them; and the columns about which promises would
    have released them."""

    before: int
    step: int
    port: int
    by: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class StageUpgrade:
    """How the operators of a stage go on with the state of those before."""

    steps: tuple[int | None, ...]
    """By step the step before whose state it takes; None: it starts empty."""
    released: tuple[ReleasedRows, ...]
    """What operators held back that are gone."""
    aggregates: dict[int, dict[str, tuple[str, str]]]
    """Steps with other aggregates of the same rows; and for each minimum or maximum of one, which part of the state
    before has its values."""
    outputs: tuple[tuple[Input, Input], ...]
    """What leaves the stage: before, and now."""

    @staticmethod
    def from_json(stored: dict[str, Any]) -> "StageUpgrade":
        released = (ReleasedRows(b, s, p, tuple(map(tuple, by))) for b, s, p, by in stored["released"])
        aggregates = {
            int(step): {name: tuple(place) for name, place in places.items()}
            for step, places in stored["aggregates"].items()
        }
        return StageUpgrade(tuple(stored["steps"]), tuple(released), aggregates, tuple(map(tuple, stored["outputs"])))


@dataclass(frozen=True)
class Upgrade:
    """The newest change of a query: the number of its plan, and the last micro-batch of the query before."""

    version: int
    batch: int
    stages: tuple[StageUpgrade, ...]


@dataclass
class PlanChanges:
    """What comparing two plans has found."""

    stages: tuple[StageUpgrade, ...] = ()
    problems: list[str] = field(default_factory=list)
    consequences: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    other_result: bool = False
    """Whether rows of the result, once emitted, are not found again by their corrections."""


def changes(old: PlanRecord, new: PlanRecord) -> PlanChanges:
    return PlanComparison(old, new).found


class PlanComparison:
    def __init__(self, old: PlanRecord, new: PlanRecord) -> None:
        self.old, self.new, self.found = old, new, PlanChanges()
        self.before = {(o.stage, o.identity): o for o in old.operators}
        self.now = {(o.stage, o.identity): o for o in new.operators}
        self._list_operators()
        self._compare_surroundings()
        for operator in new.operators:
            if (before := self._before(operator)) is not None:
                self._compare(before, operator)
        self._compare_result()
        if not self.found.problems:
            stages = [self._stage(number) for number in range(1, len(new.outputs) + 1)]
            self.found.stages = () if self.found.problems else tuple(stages)

    def _before(self, operator: OperatorRecord) -> OperatorRecord | None:
        return self.before.get((operator.stage, operator.identity))

    # --- which operators are there -----------------------------------------------------------------------------------

    def _list_operators(self) -> None:
        found = self.found
        for operator in self.new.operators:
            if operator.role == STATE:
                (found.unchanged if self._before(operator) else found.new).append(operator.name)
        gone = [o for o in self.old.operators if (o.stage, o.identity) not in self.now]
        found.gone += [o.name for o in gone if o.role == STATE]
        found.problems += [f"{name} is new, and has no state" for name in found.new]
        found.problems += [f"{name} is gone, and with it its state" for name in found.gone]
        for check in gone:
            if check.role == CHECK and not check.ports[0].insert_only:
                found.problems.append(f"{check.name} is gone, and may hold corrections that came too early")

    def _compare_surroundings(self) -> None:
        for before, now in zip_longest(self.old.sources, self.new.sources):
            if before != now:
                self.found.problems.append(f"the sources differ: {before or 'none'}; now: {now or 'none'}")
        if self.found.new or self.found.gone:
            return
        for before, now in zip_longest(self.old.exchanges, self.new.exchanges):
            if before != now:
                self.found.problems.append(f"rows go other ways: {before or 'none'}; now: {now or 'none'}")
        if len(self.old.outputs) != len(self.new.outputs):
            self.found.problems.append(f"there were {len(self.old.outputs)} stages, now {len(self.new.outputs)}")

    # --- one operator ------------------------------------------------------------------------------------------------

    def _compare(self, before: OperatorRecord, now: OperatorRecord) -> None:
        if now.role != STATE:
            return
        if before.latency != now.latency and now.latency != "eager":
            self.found.problems.append(
                f"{now.name} had the latency {before.latency}: what it has emitted early could not be corrected"
            )
        for port, (one, two) in enumerate(zip(before.ports, now.ports, strict=True)):
            if one.between != two.between:
                self._changed_input(now, f"input {port + 1}" if len(now.ports) > 1 else "its input", one, two)
        if missing := [what for what in now.kept or {} if place_of(what, before.kept or {}) is None]:
            self.found.problems.append(
                f"{now.name} needs the {' and the '.join(missing)} of rows that have arrived, and has kept only "
                f"the {', '.join(['number', *(before.kept or {})])}"
            )

    def _changed_input(self, operator: OperatorRecord, port: str, before: PortRecord, now: PortRecord) -> None:
        change = f"{show(before.between)}; now: {show(now.between)}"
        let_in = [v for v in before.excluded if not any(values.covers(v) for values in now.still_excluded)]
        if let_in:
            self.found.problems.append(
                f"{operator.name}: {port} was {change}. It relies on the promise that no row with such a value of "
                f"{let_in[0].column} ever comes"
            )
            return
        if before.insert_only and now.insert_only:
            self.found.consequences.append(
                f"{operator.name}: {port} was {change}. Rows that have arrived stay as they were selected then"
            )
            return
        self.found.problems.append(
            f"{operator.name}: {port} was {change}. Its rows are corrected later, and a correction of a row that only "
            "one of both lets through would be lost"
        )

    def _compare_result(self) -> None:
        before, now = self.old.answer, self.new.answer
        if before.identity != now.identity and not (self.found.new or self.found.gone):
            self.found.problems.append("the result has other lifetimes, or comes from other operators")
        (one,), (two,) = before.ports, now.ports
        if one.between != two.between or one.columns != two.columns:
            self.found.other_result = not (one.insert_only and two.insert_only)
            self.found.consequences.append(
                f"the result was {show(one.between)}; now: {show(two.between)}. Rows that were emitted stay as they are"
            )

    # --- state -------------------------------------------------------------------------------------------------------

    def _stage(self, number: int) -> StageUpgrade:
        pairs = [(self._before(operator), operator) for operator in self.new.of_stage(number)]
        return StageUpgrade(
            tuple(before.step if before else None for before, _ in pairs),
            tuple(self._released(number)),
            {now.step: extremes(before, now) for before, now in pairs if before and before.results != now.results},
            tuple(zip(self.old.outputs[number - 1], self.new.outputs[number - 1], strict=True)),
        )

    def _released(self, stage: int) -> Iterator[ReleasedRows]:
        """The operators that hold rows back which are gone, and what takes their rows."""
        for align in self.old.of_stage(stage):
            if align.role == WAIT and (stage, align.identity) not in self.now:
                yield from self._takers(stage, align, align.step)

    def _takers(self, stage: int, align: OperatorRecord, step: int) -> Iterator[ReleasedRows]:
        outputs, problems = self.old.outputs[stage - 1], self.found.problems
        if outputs[0] == step and stage == len(self.old.outputs):
            if self.new.answer.ports[0].columns != align.ports[0].columns:
                problems.append(f"{align.name} is gone, and holds rows with other columns")
            yield self._released_to(stage, align, RESULT, 0)
        if step in outputs[1:]:
            problems.append(f"{align.name} is gone, and holds rows that another stage needs")
        for user in self.old.of_stage(stage):
            for port in [port for port, origin in enumerate(user.inputs) if origin == step]:
                now = self.now.get((stage, user.identity))
                if now is not None and now.ports[port].columns == align.ports[0].columns:
                    yield self._released_to(stage, align, now.step, port)
                elif now is None and user.role == WAIT:
                    yield from self._takers(stage, align, user.step)
                else:
                    problems.append(f"{align.name} is gone, and what took its rows has changed")

    def _released_to(self, stage: int, align: OperatorRecord, step: int, port: int) -> ReleasedRows:
        """New operators that hold rows back on the way into a port get them first."""
        operators = self.new.of_stage(stage)
        origin = (self.new.answer if step == RESULT else operators[step]).inputs[port]
        while isinstance(origin, int) and operators[origin].role == WAIT and not self._before(operators[origin]):
            step, port, origin = origin, 0, operators[origin].inputs[0]
        return ReleasedRows(align.step, step, port, tuple(map(tuple, align.by or ())))


def place_of(what: str, kept: dict[str, str]) -> tuple[str, str] | None:
    """Where an aggregate has kept what another one needs: the field of its state, and the name in it."""
    if what in kept:
        return ("extremes" if what.startswith(("min of", "max of")) else "live"), kept[what]
    values = f"values of {what[7:]}"
    return ("live", kept[values]) if what.startswith(("min of", "max of")) and values in kept else None


def extremes(before: OperatorRecord, now: OperatorRecord) -> dict[str, tuple[str, str]]:
    """For each minimum and maximum, by its name, where its values are."""
    needed = {name: what for what, name in (now.kept or {}).items() if what.startswith(("min of", "max of"))}
    found = {name: place_of(what, before.kept or {}) for name, what in needed.items()}
    return {name: place for name, place in found.items() if place is not None}


def show(between: list[str]) -> str:
    return f"[{' | '.join(text.rpartition(' #')[0] or text for text in between)}]"
