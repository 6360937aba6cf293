"""How far the shards of an earlier stage have come with an exchange.

Rows may come from each of them, so only what all of them promise holds: the lowest CTI, and of each payload the
earliest of the times promised. A shard that had nothing of a payload promises at once, one that still works on it
later; what some have promised waits here for the others.
"""

from typing import Any

from cedr.columnar.promises import NONE, Promises
from cedr.temporal.time import MIN


class Upstream:
    """`shards` is how many there are. None of them is heard of twice in a round."""

    def __init__(self, shards: int) -> None:
        self.shards = shards
        self.ctis: dict[int, int] = {}
        self.waiting: dict[int, Promises] = {}
        """Of each shard what it has promised and not all others have."""
        self.reached = NONE
        """What all promised about payloads of which some have promised more."""

    def hear(self, shard: int, cti: int, promises: Promises) -> None:
        self.ctis[shard] = cti
        self.waiting[shard] = self.waiting.get(shard, NONE).plus(promises)

    @property
    def cti(self) -> int:
        """The progress all have made."""
        return min(self.ctis.values()) if len(self.ctis) == self.shards else MIN

    def take_promises(self) -> Promises:
        """What all promise since the last time, beside the CTI."""
        if len(self.ctis) < self.shards or not any(map(len, self.waiting.values())):
            return NONE
        (first, *others) = sorted(self.waiting)
        met, reached = self.waiting[first], self.ctis[first]
        for shard in others:
            met = met.combined(reached, self.waiting[shard], self.ctis[shard])
            reached = min(reached, self.ctis[shard])
        self.waiting = {shard: told.beyond(met).after(reached) for shard, told in self.waiting.items()}
        new, self.reached = met.beyond(self.reached), met
        return new.after(reached)

    def save(self) -> dict[str, Any]:
        return {"ctis": dict(self.ctis), "waiting": dict(self.waiting), "reached": self.reached}

    def load(self, state: dict[str, Any]) -> None:
        self.ctis, self.waiting, self.reached = dict(state["ctis"]), dict(state["waiting"]), state["reached"]
