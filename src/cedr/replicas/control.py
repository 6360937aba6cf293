"""The control store: a folder of small files in which replicas, their merge and people tell each other things.

    set.json           the columns of the answer, the same for all versions of the query
    wishes/NAME        what is wished of a member: which job it runs, and whether it should run or be over
    standing/NAME      what a member says of itself: its process, how far it has come, what went wrong
    feedback           the time before which the merge has no more use for what a replica tells

Every file is written whole, so whoever reads sees the old words or the new ones. No one waits for another.
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

USERS_MISTAKE, TRY_AGAIN = 2, 3
"""What a member's process ends with when its error is the user's to mend; and when another process has its checkpoint,
which may be gone soon, as after a supervisor was killed."""

REMEDY = "Remove the file, and give the command again that concerns it: run, cutover or retire"

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
    """It has worked in all its input, and waits for more."""
    error: str = ""
    at: float = 0.0


class Control:
    def __init__(self, place: str) -> None:
        self.folder = Folder(place, remedy=REMEDY)
        self.wishes, self.standings = self.folder.sub("wishes"), self.folder.sub("standing")

    def make(self) -> None:
        for folder in (self.folder, self.wishes, self.standings):
            folder.make()

    def agree_on(self, schema: Schema, query: str) -> None:
        """All versions of the query must have one answer; the first that comes says which columns it has."""
        said = self.folder.write_once("set.json", json.dumps({"columns": show_schema(schema)}).encode())
        known = json.loads(said)["columns"]
        if known != (mine := show_schema(schema)):
            raise QueryError(
                f"{query} puts out {mine}, but the replicas in {self.folder.place} put out {known}; a new version "
                "must tell the same history, another answer needs a folder of its own"
            )

    # --- wishes ------------------------------------------------------------------------------------------------------

    def wish(self, wish: DesiredState) -> None:
        self.wishes.write(wish.name, json.dumps(asdict(wish)).encode())

    def wished(self) -> dict[str, DesiredState]:
        found = {name: self.wishes.find(name) for name in self.wishes.names()}
        return {name: DesiredState(**json.loads(said)) for name, said in found.items() if said is not None}

    def wish_of(self, name: str) -> DesiredState | None:
        said = self.wishes.find(name)
        return None if said is None else DesiredState(**json.loads(said))

    def stop_all(self) -> None:
        """Ask all members to stop; a later run goes on."""
        self.folder.write("stop", b"")

    def go_on(self) -> None:
        self.folder.remove(["stop"])

    @property
    def stopping(self) -> bool:
        return self.folder.has("stop")

    # --- what members say --------------------------------------------------------------------------------------------

    def stand(self, standing: MemberStatus) -> None:
        said = {**asdict(standing), "at": time.time()}
        self.standings.write(standing.name, json.dumps(said).encode(), sync="none")

    def standing(self) -> dict[str, MemberStatus]:
        found = {name: self.standings.find_intact(name) for name in self.standings.names()}
        return {name: MemberStatus(**json.loads(said)) for name, said in found.items() if said is not None}

    # --- feedback ----------------------------------------------------------------------------------------------------

    @property
    def feedback(self) -> int:
        return read_feedback(self.folder)

    def feed_back(self, t: int) -> None:
        if t > self.feedback:
            write_feedback(self.folder, t)

    def table(self) -> pl.DataFrame:
        """One row per member: what it is to do, what it does, and how far it has come."""
        said = self.standing()
        rows = [
            {
                "name": name,
                "version": wish.version,
                "wish": "over" if wish.over else "run",
                "state": said[name].state if name in said else "not started",
                "process": said[name].process if name in said else None,
                "batch": said[name].batch if name in said else None,
                "cti": None if name not in said or said[name].cti == MIN else said[name].cti,
                "error": said[name].error if name in said else "",
            }
            for name, wish in sorted(self.wished().items())
        ]
        kinds = {
            "name": pl.String,
            "version": pl.Int64,
            "wish": pl.String,
            "state": pl.String,
            "process": pl.Int64,
            "batch": pl.Int64,
            "cti": pl.Int64,
            "error": pl.String,
        }
        return pl.DataFrame(rows, schema=kinds)
