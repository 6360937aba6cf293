"""What is in a checkpoint, without the query and without Spark: shards, operators, their rows, and damaged files."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import polars as pl

from cedr.runtime.spark.shard.cells import LAYOUT, Layout
from cedr.runtime.spark.shard.packet import Packet, from_blob
from cedr.runtime.spark.shard.state import STATE_VERSION, StateStore, spilled_rows, state_folder
from cedr.storage.folder import checkpoint_folder
from cedr.storage.snapshots import OTHER_VERSION, PART, SNAPSHOT, SnapshotManifest, batch_of, file_name
from cedr.temporal.errors import CedrError, DamagedFileError
from cedr.temporal.time import INF, MIN, show

SNAPSHOT_COMES = "A shard writes one when its log has 64 micro-batches or 64 MB"


class InspectedShard(NamedTuple):
    """A shard of a stage, or after their number has changed a cell of it (`cells`).

    worker     the shard that works on it
    batch      the last micro-batch that was processed; None before the first
    snapshot   the micro-batch of its newest snapshot
    nbytes     bytes of this snapshot and its parts
    logged     micro-batches since, whose packets are in logs of `log_bytes`
    operators  as the snapshot describes them; without one, as the metrics of the last micro-batch do
    """

    stage: int
    shard: int
    worker: int
    batch: int | None
    snapshot: int | None
    nbytes: int
    logged: int
    log_bytes: int
    operators: list[dict[str, Any]]


class Inspection:
    """A checkpoint. All files of its state are read and verified."""

    def __init__(self, checkpoint: str) -> None:
        self.folder = checkpoint_folder(checkpoint)
        if not self.folder.sub("state").path_is_there:
            raise CedrError(
                f"{checkpoint} is not the checkpoint of a query that cedr runs: it has no folder cedr/state"
            )
        self.damaged: list[str] = []
        self.files = 0
        self.query = self._query()
        self.layout: Layout | None = None
        if any(name.startswith(LAYOUT) for name in self.folder.names()):
            self.layout = self._verified(LAYOUT, lambda: Layout.read(self.folder))
        """None if the number of shards never changed."""
        self.trees: dict[tuple[int, int], Any] = {}
        """By stage and shard, the newest snapshot."""
        self.shards = [self._shard(*place) for place in self._places()]

    @property
    def show_time(self) -> Callable[[int], str]:
        """Times as the sources of the query have them."""
        if not self.query.get("timestamps"):
            return show
        kind = pl.Datetime("us", self.query.get("zone"))
        return lambda t: show(t) if t in (INF, MIN) else str(pl.Series([t]).cast(kind)[0])

    def _query(self) -> dict[str, Any]:
        found = self._verified("query.json", lambda: json.loads(self.folder.read("query.json")))
        return found if isinstance(found, dict) else {}

    def _places(self) -> list[tuple[int, int, int]]:
        """Stage, number and worker of each shard."""
        if self.layout is not None:
            return [(n, c.number, c.shard) for n, stage in enumerate(self.layout.stages, 1) for c in stage.cells]
        state = self.folder.sub("state")
        names = [(stage, shard) for stage in state.subfolders() for shard in state.sub(stage).subfolders()]
        found = sorted((int(stage), int(shard)) for stage, shard in names if stage.isdigit() and shard.isdigit())
        return [(stage, shard, shard) for stage, shard in found]

    def _verified(self, name: str, read: Callable[[], Any]) -> Any:
        """What is read from a file; None if it is damaged."""
        self.files += 1
        try:
            return read()
        except DamagedFileError as e:
            self.damaged.append(str(e))
        except FileNotFoundError:
            self.damaged.append(str(self.folder.damaged(name, "it is missing")))
        return None

    # --- one shard ---------------------------------------------------------------------------------------------------

    def _shard(self, stage: int, shard: int, worker: int) -> InspectedShard:
        store = StateStore(state_folder(self.folder.place, stage, shard))
        names = store.folder.names()
        manifests = self._snapshots(store, names)
        newest = manifests[-1] if manifests else None
        if newest is not None:
            self.trees[stage, shard] = self._verified(newest.name, lambda: store.snapshots.read(newest))
        after = -1 if newest is None else batch_of(newest.name)
        logs = self._logs(store, names, after)
        return InspectedShard(
            stage,
            shard,
            worker,
            max([batch_of(n) for n in names if n.startswith(("log-", f"{SNAPSHOT}-"))], default=None),
            None if newest is None else after,
            0 if newest is None else sum(place.size for place in newest.places),
            logs,
            store.log_bytes,
            self._operators(stage, shard, newest),
        )

    def _snapshots(self, store: StateStore, names: list[str]) -> list[SnapshotManifest]:
        found = []
        for name in (n for n in names if n.startswith(f"{SNAPSHOT}-")):
            manifest = self._verified(name, lambda name=name: snapshot_of(store, batch_of(name)))  # type: ignore[misc]
            if manifest is not None:
                found.append(manifest)
        needed = {part: manifest.name for manifest in found for part in manifest.parts}
        for part in (n for n in names if n.startswith(f"{PART}-")):
            self._verified(part, lambda part=part: store.folder.read_ranges(part, []))  # type: ignore[misc]
        self.damaged += [
            str(store.folder.damaged(part, f"it is missing, and {name} requires it"))
            for part, name in needed.items()
            if part not in names
        ]
        return found

    def _logs(self, store: StateStore, names: list[str], after: int) -> int:
        """Verifies all logs and their rows; returns the number of those after the newest snapshot."""
        batches, store.log_bytes = [batch_of(n) for n in names if n.startswith("log-")], 0
        for batch in batches:
            before = store.log_bytes
            packets = self._verified(file_name("log", batch), lambda batch=batch: store.logged(batch)) or []  # type: ignore[misc]
            for packet in packets:
                self._rows(store, packet)
            if batch <= after:
                store.log_bytes = before
        last = max(batches, default=after)
        missing = [b for b in range(after + 1, last) if b not in batches]
        why = f"it is missing, and the state after micro-batch {last} requires it"
        self.damaged += [str(store.folder.damaged(file_name("log", b), why)) for b in missing]
        return sum(b > after for b in batches)

    def _rows(self, store: StateStore, packet: Packet) -> None:
        if (spilled := spilled_rows(packet)) is not None:
            self._verified(spilled.name, lambda: store.rows(packet))

    def _operators(self, stage: int, shard: int, newest: SnapshotManifest | None) -> list[dict[str, Any]]:
        if newest is not None:
            return list(newest.json.get("operators", []))
        content = self.folder.sub("metrics").find_intact(f"{stage}-{shard}")
        return [] if content is None else [from_metrics(stage, row) for row in from_blob(content).iter_rows(named=True)]

    # --- one operator ------------------------------------------------------------------------------------------------

    def state_of(self, name: str) -> dict[int, Any]:
        """By shard, the state of the operator that is called STAGE.NUMBER in the list, or has this identity."""
        found: dict[int, Any] = {}
        for shard in self.shards:
            for number, operator in enumerate(shard.operators):
                if name in (f"{shard.stage}.{number}", operator.get("identity")):
                    tree = self.trees.get((shard.stage, shard.shard))
                    if tree is None:
                        raise CedrError(
                            f"the rows of operator {name} are not in a snapshot, only in logs: stage {shard.stage}, "
                            f"shard {shard.shard} has no snapshot that can be read. {SNAPSHOT_COMES}"
                        )
                    found[shard.shard] = states_of(tree)[number]
        if not found:
            names = [f"{s.stage}.{n}" for s in self.shards for n in range(len(s.operators))]
            raise CedrError(f"there is no operator {name}; there are: {', '.join(dict.fromkeys(names))}")
        return found


def snapshot_of(store: StateStore, batch: int) -> SnapshotManifest:
    manifest = store.snapshots.manifest(batch)
    if manifest.json.get("state") != STATE_VERSION:
        raise store.folder.damaged(manifest.name, OTHER_VERSION)
    return manifest


def from_metrics(stage: int, row: dict[str, Any]) -> dict[str, Any]:
    """An operator as a snapshot would describe it, as far as metrics do."""
    cti = MIN if row["cti_out"] is None else row["cti_out"]
    found = {"place": f"stage {stage}", "step": row["step"], "operator": row["operator"], "text": row["operator"]}
    return {**found, "rows": row["state_rows"], "bytes": row["state_bytes"], "cti": cti}


def states_of(tree: Any) -> list[Any]:
    """The states of all operators, in the order in which a snapshot describes them."""
    return [state for engine in (tree["engine"], *tree["paths"]) for state in engine["operators"]]
