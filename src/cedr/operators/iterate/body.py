"""The body of a loop: operators in order, each taking its rows from inputs of the loop or from operators before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cedr.columnar.chunk import Chunk, concat
from cedr.columnar.state import PARTS, Stateful, counted, fields
from cedr.operators.base import Operator

Origin = int | str
"""The number of an operator, or the name of an input."""


@dataclass
class Body(Stateful):
    operators: Sequence[Operator]
    inputs: Sequence[tuple[Origin, ...]]
    output: Origin
    names: Sequence[str] = field(default=())
    """What each input from outside is called in messages."""

    state = fields(operators=counted(PARTS))

    def run(self, entering: Mapping[Origin, Chunk]) -> Chunk | None:
        """What comes out when chunks enter; None when nothing reaches the end."""
        outputs_of = dict(entering)
        for number, (operator, origins) in enumerate(zip(self.operators, self.inputs, strict=True)):
            outputs = [operator.process(port, outputs_of[o]) for port, o in enumerate(origins) if o in outputs_of]
            if outputs:
                outputs_of[number] = concat(outputs)
        return outputs_of.get(self.output)
