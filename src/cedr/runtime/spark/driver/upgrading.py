"""Whether a query may continue with a checkpoint: the plans that it had, and what follows from a change.

    plan-1      the query of the first start
    plan-2      another query, which continues with its state from a micro-batch on; ...

The newest one counts. Writing it is the whole change: shards move the state when they read the snapshot that was taken
after that micro-batch (`cedr.runtime.spark.shard.upgrade`). The packets since a snapshot can be processed only by the
query that they were made for, so there must be none.
"""

import json
from dataclasses import asdict, dataclass

from cedr.plan.changes import FIRST_VERSION, PlanChanges, StageUpgrade, Upgrade, changes
from cedr.plan.identity import PlanRecord
from cedr.runtime.spark.shard.cells import Layout
from cedr.runtime.spark.shard.state import state_folder
from cedr.storage.folder import Folder
from cedr.storage.snapshots import SNAPSHOT, file_name
from cedr.temporal.errors import QueryError

PLAN = "plan-"
ACCEPT = "start with upgrade=True (./cedr run --upgrade)"
AS_IT_WAS = "start the query as it was once more and let it end or stop it (./cedr run --once)"


@dataclass(frozen=True)
class KeptPlan:
    """A plan of a checkpoint.

    before   the plan whose state it has continued with, while there is no other
    layout   how often the number of shards had changed
    """

    record: PlanRecord
    upgrade: Upgrade | None = None
    before: PlanRecord | None = None
    layout: int = 0

    @property
    def version(self) -> int:
        return self.upgrade.version if self.upgrade else FIRST_VERSION

    @staticmethod
    def read(folder: Folder) -> "KeptPlan | None":
        """The newest; None in a checkpoint of an earlier version of cedr."""
        found = [int(name.removeprefix(PLAN)) for name in folder.names() if name.startswith(PLAN)]
        if not found:
            return None
        stored = json.loads(folder.read(f"{PLAN}{max(found)}"))
        record = PlanRecord.from_json(stored["record"])
        if stored["before"] is None:
            return KeptPlan(record)
        stages = tuple(StageUpgrade.from_json(stage) for stage in stored["stages"])
        upgrade = Upgrade(stored["version"], stored["batch"], stages)
        return KeptPlan(record, upgrade, PlanRecord.from_json(stored["before"]), stored["layout"])

    def write(self, folder: Folder) -> None:
        content = {
            "version": self.version,
            "batch": self.upgrade.batch if self.upgrade else -1,
            "layout": self.layout,
            "stages": [asdict(stage) for stage in self.upgrade.stages] if self.upgrade else [],
            "record": self.record.to_json(),
            "before": self.before.to_json() if self.before else None,
        }
        folder.write(f"{PLAN}{self.version}", json.dumps(content).encode())


@dataclass(frozen=True)
class ChangedQuery:
    """A query that may continue with the checkpoint of another one; `plan` is still to be written."""

    plan: KeptPlan
    found: PlanChanges

    def check_accepted(self, accepted: bool) -> None:
        if self.found.consequences and not accepted:
            raise QueryError(
                "the query has changed. It can continue with its checkpoint, but not as if it had always been like "
                f"this:\n{listed(self.found.consequences)}\nTo continue, {ACCEPT}; or use a new checkpoint"
            )

    def check_table(self, sink: object, has_rows: bool) -> None:
        """Corrections of rows that the query before has emitted would not find them in its table."""
        if self.found.other_result and has_rows:
            raise QueryError(
                f"the query has changed, and {sink} has rows of the query before that are corrected later:\n"
                f"{listed(self.found.consequences)}\nUse another place for the new result, which gets what is emitted "
                "and corrected from here on"
            )


class Checkpoint:
    """What a start has to know of its checkpoint. `last` and `planned` are the newest micro-batches that Spark has
    committed and begun; None: there are none."""

    def __init__(self, folder: Folder, layout: Layout, last: int | None, planned: int | None) -> None:
        self.folder, self.layout, self.last, self.planned = folder, layout, last, planned

    def changed(self, kept: KeptPlan, record: PlanRecord) -> ChangedQuery:
        """The query with this plan, if it may continue with what is there."""
        base = self._base(kept)
        found = changes(base, record)
        if found.problems:
            raise QueryError(refusal(self.folder, base, record, found))
        self._check_snapshots()
        batch = -1 if self.last is None else self.last
        upgrade = Upgrade(kept.version + 1, batch, found.stages)
        return ChangedQuery(KeptPlan(record, upgrade, base, self.layout.version), found)

    def _base(self, kept: KeptPlan) -> PlanRecord:
        """The plan that wrote the snapshots: not the newest, if it has not processed anything yet."""
        if kept.upgrade is None or kept.upgrade.batch != (-1 if self.last is None else self.last):
            return kept.record
        assert kept.before is not None
        if kept.layout != self.layout.version:
            raise QueryError(
                "the query and the number of shards have changed, and it has not processed a micro-batch since; let it "
                "process one before you change it again"
            )
        return kept.before

    def _check_snapshots(self) -> None:
        """Every cell has a snapshot of its state after the last micro-batch."""
        if self.planned != self.last:
            raise QueryError(f"the query has changed, and its last micro-batch was interrupted: {AS_IT_WAS}")
        if self.last is None:
            return
        snapshot = file_name(SNAPSHOT, self.last)
        cells = [(number, cell.number) for number, s in enumerate(self.layout.stages, start=1) for cell in s.cells]
        lacking = [cell for cell in cells if snapshot not in state_folder(self.folder.place, *cell).names()]
        if lacking:
            stage, cell = lacking[0]
            raise QueryError(
                f"the query has changed, and {len(lacking)} of {len(cells)} shards have no snapshot of their state "
                f"after micro-batch {self.last}, such as shard {cell} of stage {stage}: {AS_IT_WAS}; it writes them "
                "when it ends. Then start the changed one"
            )


def refusal(folder: Folder, old: PlanRecord, new: PlanRecord, found: PlanChanges) -> str:
    """Which operators are there, which are not, and what to do."""
    there, here = first_difference(old.lines, new.lines)
    operators = {"unchanged": found.unchanged, "new": found.new, "gone": found.gone}
    table = "\n".join(f"  {kind:<9}  {name}" for kind, names in operators.items() for name in names)
    return (
        f"the checkpoint {folder.place} belongs to another query. It has:\n  {there}\nthis query has:\n  {here}\n"
        f"Operators with state:\n{table or '  none'}\nIts state does not fit this query:\n{listed(found.problems)}\n"
        "Use a new checkpoint, or run the query it belongs to. docs/upgrading.md lists what may change"
    )


def listed(texts: list[str]) -> str:
    return "\n".join(f"  - {text}" for text in texts)


def first_difference(old: list[str], new: list[str]) -> tuple[str, str]:
    longest = max(len(old), len(new))
    padded = [lines + ["nothing more"] * (longest - len(lines)) for lines in (old, new)]
    return next((a.strip(), b.strip()) for a, b in zip(*padded, strict=True) if a != b)
