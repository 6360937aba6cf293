"""The control store: a folder of small files through which replicas, their merge and commands communicate.

    set.json           the columns of the answer, the same for all versions of the query
    wishes/NAME        the desired state of a member: which job it runs, and whether it should run or be over
    standing/NAME      the status of a member: its process, its progress, its error
    feedback           the time before which the merge no longer needs the output of replicas

Every file is replaced as a whole, so readers see the old content or the new. Nobody waits for another.
"""

import json
import time
from dataclasses import asdict, dataclass
from typing import Literal

import polars as pl

from cedr.plan.schema import Schema, show_schema
from cedr.runtime.spark.reader.packer import read_feedback, write_feedback
from cedr.storage.folder import Folder
from cedr.temporal.errors import QueryError
from cedr.temporal.time import MIN

MERGE = "merge"
"""The member that merges the others."""

USER_ERROR, TRY_AGAIN = 2, 3
"""The exit codes of a member's process: for an error of the user; and when another process holds its checkpoint, which
may be gone soon, as after a supervisor was killed."""

REMEDY = "Remove the file, and repeat the command that concerns it: run, cutover or retire"

State = Literal["starting", "running", "stopped", "done", "over", "failed"]


@dataclass(frozen=True)
class DesiredState:
    """`job` is where a process finds the query; `version` counts the cutovers."""

    name: str
    job: str = ""
    version: int = 1
    over: bool = False
    join: int | None = None


@dataclass(frozen=True)
class MemberStatus:
    name: str
    state: State
    process: int
    batch: int | None = None
    cti: int = MIN
    idle: bool = False
    """It has processed all its input, and waits for more."""
    error: str = ""
    at: float = 0.0


class Control:
    def __init__(self, place: str) -> None:
        self.folder = Folder(place, remedy=REMEDY)
        self._desired, self._status = self.folder.sub("wishes"), self.folder.sub("standing")

    def make(self) -> None:
        for folder in (self.folder, self._desired, self._status):
            folder.make()

    def agree_on(self, schema: Schema, query: str) -> None:
        """All versions of the query must have one answer; the first one determines its columns."""
        stored = self.folder.write_once("set.json", json.dumps({"columns": show_schema(schema)}).encode())
        columns = json.loads(stored)["columns"]
        if columns != (mine := show_schema(schema)):
            raise QueryError(
                f"{query} emits {mine}, but the replicas in {self.folder.place} emit {columns}; a new version must "
                "have the same columns, another answer requires its own folder"
            )

    # --- desired states ----------------------------------------------------------------------------------------------

    def set_desired(self, state: DesiredState) -> None:
        self._desired.write(state.name, json.dumps(asdict(state)).encode())

    def desired(self) -> dict[str, DesiredState]:
        found = {name: self._desired.find(name) for name in self._desired.names()}
        return {name: DesiredState(**json.loads(content)) for name, content in found.items() if content is not None}

    def desired_of(self, name: str) -> DesiredState | None:
        content = self._desired.find(name)
        return None if content is None else DesiredState(**json.loads(content))

    def stop_all(self) -> None:
        """Request all members to stop; a later run resumes them."""
        self.folder.write("stop", b"")

    def resume(self) -> None:
        self.folder.remove(["stop"])

    @property
    def stopping(self) -> bool:
        return self.folder.has("stop")

    # --- status ------------------------------------------------------------------------------------------------------

    def report(self, status: MemberStatus) -> None:
        content = {**asdict(status), "at": time.time()}
        self._status.write(status.name, json.dumps(content).encode(), sync="none")

    def status(self) -> dict[str, MemberStatus]:
        found = {name: self._status.find_intact(name) for name in self._status.names()}
        return {name: MemberStatus(**json.loads(content)) for name, content in found.items() if content is not None}

    # --- feedback ----------------------------------------------------------------------------------------------------

    @property
    def feedback(self) -> int:
        return read_feedback(self.folder)

    def feed_back(self, t: int) -> None:
        if t > self.feedback:
            write_feedback(self.folder, t)

    def table(self) -> pl.DataFrame:
        """One row per member: its desired state, its status and its progress."""
        status = self.status()
        rows = [
            {
                "name": name,
                "version": desired.version,
                "desired": "over" if desired.over else "run",
                "state": status[name].state if name in status else "not started",
                "process": status[name].process if name in status else None,
                "batch": status[name].batch if name in status else None,
                "cti": None if name not in status or status[name].cti == MIN else status[name].cti,
                "error": status[name].error if name in status else "",
            }
            for name, desired in sorted(self.desired().items())
        ]
        kinds = {
            "name": pl.String,
            "version": pl.Int64,
            "desired": pl.String,
            "state": pl.String,
            "process": pl.Int64,
            "batch": pl.Int64,
            "cti": pl.Int64,
            "error": pl.String,
        }
        return pl.DataFrame(rows, schema=kinds)
