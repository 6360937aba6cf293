"""The body of a loop: operators in order, each taking its rows from inputs of the loop or from operators before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cedr.columnar.chunk import Chunk, concat
from cedr.operators.base import Operator, State

Origin = int | str
"""The number of an operator, or the name of an input."""


@dataclass
class Body:
    operators: Sequence[Operator]
    inputs: Sequence[tuple[Origin, ...]]
    output: Origin
    names: Sequence[str] = field(default=())
    """What each input from outside is called in messages."""

    def run(self, entering: Mapping[Origin, Chunk]) -> Chunk | None:
        """What comes out when chunks enter; None when nothing reaches the end."""
        outputs_of = dict(entering)
        for number, (operator, origins) in enumerate(zip(self.operators, self.inputs, strict=True)):
            outputs = [operator.process(port, outputs_of[o]) for port, o in enumerate(origins) if o in outputs_of]
            if outputs:
                outputs_of[number] = concat(outputs)
        return outputs_of.get(self.output)

    def size(self) -> tuple[int, int]:
        """Rows and bytes that the operators hold."""
        sizes = [operator.state_size() for operator in self.operators]
        return sum(rows for rows, _ in sizes), sum(size for _, size in sizes)

    def save(self) -> list[State]:
        return [operator.snapshot() for operator in self.operators]

    def load(self, states: Sequence[State]) -> None:
        for operator, state in zip(self.operators, states, strict=True):
            operator.restore(state)
