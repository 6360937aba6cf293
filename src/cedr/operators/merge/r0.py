"""R0: no adjusts, and starts that strictly increase. Whatever starts later than all before is new."""

from cedr.columnar.chunk import Chunk, Times
from cedr.operators.merge.base import InOrder


class R0(InOrder):
    algorithm = "R0"
    increases = True

    def take_in_order(self, port: int, chunk: Chunk, vs: Times) -> None:
        new = 1 if vs[0] == self.highest else 0
        if new < len(vs):
            self.highest = int(vs[-1])
            self.emit(Chunk(chunk.rows[new:]) if new else chunk)
