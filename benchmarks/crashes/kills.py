"""Kills: drawn from a seed, spread over all batches and all phases of a batch, until the query ends.

A killed driver is gone with its JVM at once, in the middle of whatever it did. Spark's Python workers and the processes
of the shards are left to themselves and must end; the next driver does not wait for them.
"""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from crashes.victim import PHASES, Checkpoint, Phase, Victim

AFTER = 0.25
"""Maximum number of seconds between the start of a phase and a kill."""


class Moment(NamedTuple):
    """When to kill: after a delay, once a driver has come so far with a batch."""

    phase: Phase
    batch: int
    delay: float


def moments(kills: int, batches: int, start: float, rng: random.Random) -> list[Moment]:
    """In order of their batches, so that the query comes forward; the last is in the last batch, which closes. `start`
    is how many seconds a driver needs until it is through its first batch."""
    spread = sorted(rng.randrange(batches) for _ in range(kills - 1))
    phases = [rng.choice(PHASES) for _ in spread]
    found = [*zip(phases, spread, strict=True), (rng.choice(PHASES[1:-1]), batches - 1)]
    return [Moment(phase, batch, rng.uniform(0, start if phase == "start" else AFTER)) for phase, batch in found]


@dataclass(frozen=True)
class Kill:
    """A kill that was made, and the batch and phase it hit."""

    number: int
    seconds: float
    batch: int
    phase: Phase
    started: bool
    """Whether the driver had done anything yet that can be seen from outside."""

    @property
    def where(self) -> str:
        return self.phase if self.started else "start"

    def __str__(self) -> str:
        last = f"batch {self.batch}, {self.phase}" if self.batch >= 0 else "nothing yet"
        hit = last if self.started else f"starting, before it was {last}"
        return f"kill {self.number} after {self.seconds:.1f} s: {hit}"


class Calm(NamedTuple):
    """The seconds that a driver took which nobody killed: until it was through its first batch, and in all."""

    first_batch: float
    seconds: float


class Trial:
    """One query, one folder, many drivers."""

    def __init__(self, folder: Path, query: str, sink: str) -> None:
        self.folder, self.checkpoint = folder, Checkpoint(folder)
        self.arguments = query, str(folder), sink
        self.victims: list[Victim] = []

    def run_to_the_end(self) -> Calm:
        """A driver that nobody kills."""
        began = time.monotonic()
        victim = self._start()
        victim.wait_for("done", self.checkpoint.reached("done") + 1)
        first = time.monotonic() - began
        victim.finish()
        return Calm(first, time.monotonic() - began)

    def run_with_kills(self, moments: list[Moment]) -> Iterator[Kill]:
        """Kill a driver at each of these moments, then let one come to the end."""
        for number, moment in enumerate(moments, 1):
            yield self._killed(number, moment)
        self.run_to_the_end()

    def left(self) -> list[int]:
        """Processes of any driver that are still there after a while."""
        return [pid for victim in self.victims for pid in victim.left()]

    def end(self) -> None:
        """Whatever happened: leave no process behind."""
        for victim in self.victims:
            victim.end()

    def _start(self) -> Victim:
        self.victims.append(Victim(self.folder, *self.arguments))
        return self.victims[-1]

    def _killed(self, number: int, moment: Moment) -> Kill:
        before, began = self.checkpoint.now(), time.monotonic()
        reached = self.checkpoint.reached(moment.phase)
        victim = self._start()
        if moment.phase != "start":
            victim.wait_for(moment.phase, max(moment.batch, reached + 1))  # a batch that has not come so far yet
        time.sleep(moment.delay)
        if victim.has_ended:  # it was faster than we are, and all is done: hit one that starts once more
            return self._killed(number, Moment("start", moment.batch, 10 * moment.delay))
        victim.kill()
        after = self.checkpoint.now()
        return Kill(number, time.monotonic() - began, *after, started=after != before)
