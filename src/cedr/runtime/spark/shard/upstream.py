"""The progress of the shards of an earlier stage in an exchange.

Rows may come from each of them, so only what all of them promise holds: the lowest CTI, and for each payload the
earliest of the promised times. A shard without rows of a payload promises at once, one that still processes it later;
promises of some shards wait here for the others.
"""

from collections.abc import Callable

from cedr.columnar.promises import NONE, Promises
from cedr.columnar.state import DICT, PROMISES, Stateful, each, fields
from cedr.temporal.time import MIN


class Upstream(Stateful):
    """`shards` is their number. Each of them reports at most once in a round.

    `within`: which ones a shard consists of now, if it was split after it reported.
    """

    state = fields(ctis=DICT, waiting=each(PROMISES), reached=PROMISES)

    def __init__(self, shards: int, within: Callable[[int], tuple[int, ...]] = lambda shard: (shard,)) -> None:
        self.shards, self.within = shards, within
        self.ctis: dict[int, int] = {}
        self.waiting: dict[int, Promises] = {}
        """For each shard the promises that not all others have made."""
        self.reached = NONE
        """The promises of all about payloads for which some have promised more."""

    def update(self, shard: int, cti: int, promises: Promises) -> None:
        for part in self.within(shard):
            self.ctis[part] = cti
            self.waiting[part] = self.waiting.get(part, NONE).plus(promises)

    def restored(self) -> None:
        """What a shard has promised holds for each of its parts."""
        self.ctis = {part: cti for shard, cti in self.ctis.items() for part in self.within(shard)}
        self.waiting = {part: made for shard, made in self.waiting.items() for part in self.within(shard)}

    @property
    def cti(self) -> int:
        """The progress of all shards."""
        return min(self.ctis.values()) if len(self.ctis) == self.shards else MIN

    def take_promises(self) -> Promises:
        """New promises of all shards since the last call, in addition to the CTI."""
        if len(self.ctis) < self.shards or not any(map(len, self.waiting.values())):
            return NONE
        (first, *others) = sorted(self.waiting)
        met, reached = self.waiting[first], self.ctis[first]
        for shard in others:
            met = met.combined(reached, self.waiting[shard], self.ctis[shard])
            reached = min(reached, self.ctis[shard])
        self.waiting = {shard: made.beyond(met).after(reached) for shard, made in self.waiting.items()}
        new, self.reached = met.beyond(self.reached), met
        return new.after(reached)
