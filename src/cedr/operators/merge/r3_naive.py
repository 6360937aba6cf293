"""R3-: what R3 does, with an index for each input and one for the output. Only here to be compared with.

It stores every payload once per input that has it, and looks an event up in two indexes instead of one. The paper's
Figures 2, 3 and 7 show what that costs.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl

from cedr.columnar.chunk import VS, Chunk, Times
from cedr.columnar.index import Ids, RowIndex
from cedr.columnar.state import PARTS, array, each, fields
from cedr.operators.merge.indexed import resized
from cedr.operators.merge.r3 import R3
from cedr.plan.merge_policy import Policy


class R3Naive(R3):
    algorithm = "R3-"

    may_use_blocks = False

    state = fields(own=PARTS, own_ends=each(array(in_place=True)))

    def __init__(self, schema: Mapping[str, pl.DataType], ports: int = 2, policy: Policy | str = "first") -> None:
        super().__init__(schema, ports, policy)
        self.own = [RowIndex({VS: pl.Int64(), **self.schema}) for _ in range(ports)]
        """The events of each input, with their payloads."""
        self.own_ends = [np.empty(0, dtype=np.int64) for _ in range(ports)]

    def work_in(self, port: int, given: Chunk, rows: Ids | None, used: Chunk, nodes: Ids) -> None:
        super().work_in(port, given, rows, used, nodes)
        known = nodes >= 0
        numbers = self.own[port].ids(used.rows.filter(pl.Series(known)))
        if len(self.own[port]) > len(self.own_ends[port]):
            self.own_ends[port] = resized(self.own_ends[port], 2 * len(self.own[port]))
        self.own_ends[port][numbers] = used.new[known]

    def ends_of(self, port: int) -> Times:
        """Found by looking every event of the input up in the index of the output."""
        end = self.start[: self.size].copy()
        own = self.own[port]
        if len(own):
            nodes = self.index.ids(own.rows, add=False)
            end[nodes[nodes >= 0]] = self.own_ends[port][: len(own)][nodes >= 0]
        return end

    def freeze(self, port: int, t: int) -> None:
        super().freeze(port, t)
        for m, own in enumerate(self.own):
            if own.may_compact():
                alive = self.are_alive(self.index.ids(own.rows, add=False))
                numbers = own.compact(np.flatnonzero(alive))
                if numbers is not None:
                    self.own_ends[m] = self.own_ends[m][np.flatnonzero(numbers >= 0)]

    def forget(self, port: int) -> None:
        super().forget(port)
        self.own[port] = RowIndex({VS: pl.Int64(), **self.schema})
        self.own_ends[port] = np.empty(0, dtype=np.int64)
