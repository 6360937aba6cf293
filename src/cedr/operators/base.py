"""The contract of an operator.

`process(port, chunk)` takes the next chunk of one input and returns the next chunk of the output. What is promised:

- *well behaved*: whatever the inputs' order and slicing, the canonical history of all output so far equals the oracle's
  answer for the canonical histories of all input so far, up to the latency the operator was given; at the CTI of an
  output chunk they agree *to* that time, and after a final CTI of infinity they are equal;
- the output is a valid stream: nothing below an output CTI, every adjust names a tuple that was emitted;
- the output CTI is the largest the inputs allow, and state that only matters before it is gone.

Inputs must be valid streams; `Finalize` sees to that at the edge of a plan. An operator trusts its input and reads no
clock. It declares its state as fields (`cedr.columnar.state`). `snapshot` returns everything needed to continue
elsewhere: `restore` of it into a fresh operator with the same settings continues as if nothing had happened.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import TIMES, Chunk
from cedr.columnar.promises import PromiseIndex
from cedr.columnar.state import LIST, NUMBER, PARTS, TRANSIENT, Stateful, fields
from cedr.contracts import DEBUG
from cedr.temporal.time import MIN

if TYPE_CHECKING:
    from cedr.operators.feedback import Skipping

Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass
class OperatorMetrics:
    """What an operator has done and what it holds."""

    rows_in: int = 0
    rows_out: int = 0
    adjusts_in: int = 0
    adjusts_out: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    cti_in: int = MIN
    cti_out: int = MIN


class Operator(Stateful, ABC):
    """Subclasses implement `on_rows` and `on_progress`; `process` does the bookkeeping."""

    ports = 1
    schema: dict[str, pl.DataType]
    """Names and types of the output payload."""

    keeps_files = False
    """Rows leave with the column that numbers their files, if they came with it."""

    waits = False
    """Rows arrive only when CTIs or promises have settled them, so a row does not show progress."""

    state = fields(
        metrics=TRANSIENT,
        ctis=LIST,
        promised=PARTS,
        cti_out=NUMBER,
        skipping=TRANSIENT,
    )

    def __init__(self) -> None:
        self.metrics = OperatorMetrics()
        self.ctis = [MIN] * self.ports
        self.promised = [PromiseIndex() for _ in range(self.ports)]
        """What each input has promised about parts of it in addition to its CTI, including the current chunk."""
        self.cti_out = MIN
        self.skipping: Skipping | None = None
        """What the consumer of the output does not need, where a merge has reported it."""

    def process(self, port: int, chunk: Chunk) -> Chunk:
        """The output that follows from the next chunk of input `port`."""
        if chunk.files and not self.keeps_files:
            chunk = chunk.without_files()
        if self.skipping is not None and self.skipping.input:
            chunk = self.skipping.useful_rows(chunk, self.promised, self.cti)
        valid = DEBUG and is_valid(chunk, self.ctis[port])
        self.ctis[port] = max(self.ctis[port], chunk.cti)
        self.promised[port].add(chunk.promises, self.ctis[port])
        out = self.advance(port, chunk)
        assert not valid or self._keeps_promises(out)
        if self.skipping is not None:
            out = self.skipping.useful_rows(out, self.promised, self.cti_out)
        if out.cti > self.cti_out:
            self.cti_out = out.cti
        elif out.cti != MIN:
            out = replace(out, cti=MIN)  # nothing new is promised
        self._count(chunk, out)
        return out

    @abstractmethod
    def advance(self, port: int, chunk: Chunk) -> Chunk:
        """Work the rows in, then the progress `self.cti`; return what changes and the CTI that now holds."""

    def _keeps_promises(self, out: Chunk) -> bool:
        """Whether nothing is emitted below the output CTI, and no end lies before its start; the input is valid."""
        if self.skipping is not None or not len(out):
            return True
        early = int(out.sync.min())
        assert early >= self.cti_out, f"{type(self).__name__} emits {early} after CTI {self.cti_out}"
        assert (np.minimum(out.old, out.new) >= out.vs).all(), f"{type(self).__name__} emits an end before its start"
        return True

    @property
    def cti(self) -> int:
        """The progress all inputs have made."""
        return min(self.ctis)

    def _count(self, chunk: Chunk, out: Chunk) -> None:
        m = self.metrics
        m.rows_in += len(chunk)
        m.rows_out += len(out)
        m.adjusts_in += len(chunk) - int(np.count_nonzero(chunk.is_insert))
        m.adjusts_out += len(out) - int(np.count_nonzero(out.is_insert))
        m.cti_in, m.cti_out = self.cti, self.cti_out
        m.state_rows, m.state_bytes = self.state_size()


def is_valid(chunk: Chunk, cti: int) -> bool:
    """Whether all rows have times and none is below the CTI. Before a Finalize they may be."""
    if any(chunk.rows[name].null_count() for name in TIMES):
        return False
    return not len(chunk) or int(chunk.sync.min()) >= cti
