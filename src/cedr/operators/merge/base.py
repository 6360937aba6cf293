"""Logical merge (LMerge): several streams with one history, as one stream with that history.

Any input may be late, disordered, revised, fail and come back; the output follows whichever is ahead. What is promised
at every moment is *compatibility* (`cedr.reference.merge`): however the inputs go on, the output can follow. The
algorithms differ in what they require of the inputs:

    R0   no adjusts, starts strictly increase
    R1   no adjusts, starts never fall, and equal starts come in the same order everywhere
    R2   no adjusts, starts never fall
    R3   start and payload are a key in every input at any moment
    R4   nothing

What breaks these is raised as a `StreamError` that names the input, the element and the rule. Nothing of the chunk is
worked in then but into what is known of that input alone: `detach` it, and the merge goes on as if it had failed.

An input that is attached later, or again, declares from when on it is complete: it has every event that ends at its
*join time* or later. Until other inputs have brought the merge that far, its CTIs do not count.

`feedback()` is the time t for which rows with both ends before t are no longer needed; operators that feed the merge
may leave them out (`cedr.operators.feedback`).
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import TIMES, Chunk, Times, empty
from cedr.columnar.picked import picked
from cedr.columnar.promises import PromiseIndex
from cedr.columnar.state import DICT, FRAME_PIECES, LIST, NUMBER, TEXT, fields
from cedr.operators.base import Operator
from cedr.operators.feedback import GivesFeedback
from cedr.plan.merge_policy import Policy, as_policy
from cedr.temporal.element import Adjust, Insert
from cedr.temporal.errors import QueryError, StreamError
from cedr.temporal.row import Row
from cedr.temporal.time import INF, MIN, as_time, show

Mask = np.ndarray[Any, np.dtype[np.bool_]]


class LMerge(GivesFeedback, Operator):
    """What all algorithms share: inputs that come and go, and whose progress counts.

    Subclasses work rows in (`take`), make the output fit an input before a CTI leaves (`freeze`) and drop what is known
    of an input (`forget`). They `emit` their output.
    """

    algorithm = ""

    state = fields(
        algorithm=TEXT,
        ports=NUMBER,
        stable=NUMBER,
        attached=LIST,
        joins=LIST,
        failed=DICT,
        arrived=LIST,
        names=DICT,
        leader=NUMBER,
        _pending=FRAME_PIECES,
    )

    def __init__(self, schema: Mapping[str, pl.DataType], ports: int = 2, policy: Policy | str = "first") -> None:
        if ports < 1:
            raise QueryError(f"merge: {ports} inputs; there must be at least one")
        self.ports = ports
        super().__init__()
        self.schema = dict(schema)
        self._nothing = empty(self.schema).rows
        self.policy = as_policy(policy)
        self.stable = MIN
        """The CTI of the output (MaxStable)."""
        self.attached = [True] * ports
        self.joins = [MIN] * ports
        self.failed: dict[int, str] = {}
        """Why inputs were detached."""
        self.arrived = [0] * ports
        self.names: dict[int, str] = {}
        """What messages call inputs that have a name."""
        self.leader = -1
        """The input whose CTI last counted."""
        self._pending: list[pl.DataFrame] = []

    # --- inputs come and go --------------------------------------------------------------------------------------

    def attach(self, port: int, join: int = MIN) -> None:
        """Input `port` is there (again), complete for all events that end at `join` or later."""
        self._check_port(port)
        if self.attached[port]:
            raise QueryError(f"merge: {self.called(port)} is attached already; detach it before it starts again")
        self.attached[port], self.joins[port] = True, as_time(join, "join time")
        self.failed.pop(port, None)

    def detach(self, port: int, why: str = "detached") -> None:
        """Input `port` is gone or no longer trusted: what it sent and no other confirms will be retracted."""
        self._check_port(port)
        if not self.attached[port]:
            raise QueryError(f"merge: {self.called(port)} is not attached ({self.failed[port]})")
        self.attached[port], self.failed[port] = False, why
        self.ctis[port], self.arrived[port] = MIN, 0
        self.forget(port)

    def add_port(self) -> int:
        """One more input, not attached yet; returns its number."""
        port, self.ports = self.ports, self.ports + 1
        self.ctis.append(MIN)
        self.promised.append(PromiseIndex())
        self.attached.append(False)
        self.joins.append(MIN)
        self.arrived.append(0)
        self.failed[port] = "not attached yet"
        return port

    def called(self, port: int) -> str:
        return self.names.get(port, f"input {port}")

    def joined(self, port: int) -> bool:
        """Does the progress of this input count? If so, all others may fail and nothing is lost."""
        return self.attached[port] and self.joins[port] <= self.reached()

    def _check_port(self, port: int) -> None:
        if not 0 <= port < self.ports:
            raise QueryError(f"merge: there is no input {port}; inputs are 0 to {self.ports - 1}")

    def feedback(self) -> int:
        """Rows whose ends, old and new, both lie before this time are no longer needed."""
        return self.reached()

    def reached(self) -> int:
        """The time up to which the output is complete."""
        return self.stable

    # --- the steps -----------------------------------------------------------------------------------------------

    def process(self, port: int, chunk: Chunk) -> Chunk:
        self._check_port(port)
        if not self.attached[port]:
            raise QueryError(
                f"merge: a chunk came from {self.called(port)}, which is not attached ({self.failed[port]}); "
                "attach(port, join) it first, with the time from which on it is complete"
            )
        return super().process(port, chunk)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        if self.stable == INF:
            return empty(self.schema, INF)  # everything is emitted
        if len(chunk):
            self.take(port, chunk)
        while (source := self._source()) >= 0:
            t = self.cti
            self.freeze(source, t)
            self.stable, self.leader = t, source
        self.arrived[port] += len(chunk)
        emitted, self._pending = self._pending, []
        if len(emitted) == 1:
            return Chunk(emitted[0], self.stable)
        return Chunk(pl.concat(emitted) if emitted else self._nothing, self.stable)

    @property
    def cti(self) -> int:
        """The CTI that the inputs whose progress counts allow the output."""
        known = [cti for port, cti in enumerate(self.ctis) if self.joined(port)]
        if not known:
            return MIN
        return self.policy.behind(max(known) if self.policy.progress == "fastest" else min(known))

    def _source(self) -> int:
        """The input that the output has to fit before its next CTI; -1 if there is none."""
        if self.cti <= self.stable:
            return -1
        joined = [port for port in range(self.ports) if self.joined(port)]
        first = self.leader if self.leader in joined else joined[0]
        return max(joined, key=lambda port: (self.ctis[port], port == first))

    @abstractmethod
    def take(self, port: int, chunk: Chunk) -> None:
        """Work in the rows of an input."""

    @abstractmethod
    def freeze(self, port: int, t: int) -> None:
        """Make the output agree with this input on all that CTI t settles."""

    @abstractmethod
    def forget(self, port: int) -> None:
        """Drop what is known of this input alone."""

    def emit(self, chunk: Chunk) -> None:
        """The rows leave with the next output. If an error comes first, with the one after it."""
        if len(chunk):
            self._pending.append(chunk.rows)

    def broken(self, port: int, chunk: Chunk, row: int, rule: str) -> StreamError:
        """The error for a row that breaks a rule."""
        vs, old, new, *values = chunk.rows.select(*TIMES, *self.schema).row(row)
        payload = Row(dict(zip(self.schema, values, strict=True)))
        element = Insert(vs, new, payload) if old == vs else Adjust(vs, old, new, payload)
        return StreamError(element, self.arrived[port] + row, f"merge, {self.called(port)}: {rule}")

    def make_room(self, state: Any) -> None:
        """A snapshot may be of another algorithm, as the algorithm depends on the inputs."""
        saved = state.get("algorithm", self.algorithm) if isinstance(state, dict) else self.algorithm
        if saved != self.algorithm:
            raise QueryError(
                f"merge: the state is that of {saved}, and here {self.algorithm} was chosen, because "
                "the inputs have other properties, for example at another level of consistency; to change it while a "
                "query runs, choose an algorithm that serves both, such as merge(..., algorithm='R4')"
            )


class InOrder(LMerge):
    """What R0, R1 and R2 share: inserts in order of start, so that only the highest start and its like matter.

    An input that joined later, or has not been counted for a while, counts from the moment the output has passed both
    its join time and everything of it that was left out; else what it is ahead by would be lost.
    """

    increases = False
    """Must starts strictly increase?"""

    state = fields(highest=NUMBER, last=LIST)

    def __init__(self, schema: Mapping[str, pl.DataType], ports: int = 2, policy: Policy | str = "first") -> None:
        super().__init__(schema, ports, policy)
        if self.policy.emits != "first":
            raise QueryError(
                f"merge: {self.algorithm} emits an event as soon as one input has it, but the policy requires "
                f"{self.policy.emits!r}; use algorithm R3 or R4"
            )
        self.highest = MIN
        """The highest start emitted (MaxVs)."""
        self.last = [MIN] * self.ports
        """The last start of each input."""

    def reached(self) -> int:
        return max(self.stable, self.highest)

    def take(self, port: int, chunk: Chunk) -> None:
        self._check(port, chunk)
        vs = chunk.vs
        self.last[port] = int(vs[-1])
        if not self.joined(port):
            self.joins[port] = max(self.joins[port], int(vs[-1]) + 1)
            return
        fresh = int(np.searchsorted(vs, self.reached(), side="left"))
        if fresh < len(vs):
            rows = picked(chunk.rows, (*TIMES, *self.schema))
            self.take_in_order(port, Chunk(rows if not fresh else rows[fresh:]), vs[fresh:])

    @abstractmethod
    def take_in_order(self, port: int, chunk: Chunk, vs: Times) -> None:
        """Rows whose start is not below the highest so far."""

    def _check(self, port: int, chunk: Chunk) -> None:
        vs = chunk.vs
        adjusts = chunk.old != vs
        if adjusts.any():
            row = int(np.argmax(adjusts))
            raise self.broken(port, chunk, row, f"{self.algorithm} takes inserts only; R3 and R4 take adjusts")
        last = self.last[port]
        falls = vs[1:] <= vs[:-1] if self.increases else vs[1:] < vs[:-1]
        first = last != MIN and (vs[0] <= last if self.increases else vs[0] < last)
        if first or falls.any():
            row = 0 if first else int(np.argmax(falls)) + 1
            before = last if first else int(vs[row - 1])
            raise self.broken(port, chunk, row, self._order_rule(before))

    def _order_rule(self, before: int) -> str:
        if self.increases:
            rule, others = "starts that strictly increase", "R1 and R2 take ties"
        else:
            rule, others = "starts that never fall", "R3 and R4 take any order"
        return f"{self.algorithm} needs {rule}, and {show(before)} came before; {others}"

    def freeze(self, port: int, t: int) -> None:
        """All that starts before t has been emitted: nothing to repair."""

    def forget(self, port: int) -> None:
        self.last[port] = MIN
