"""The header of instances, derived from their columns: start, end, root time, id and contributors.

id   of an event: a hash of its type, start, payload and number among equal events; of a composite: `idgen` of its
     contributors' ids. It does not depend on arrival. What forbids nothing keeps the id of what it kept.
rt   the earliest start of anything in it
"""

import numpy as np

from cedr.columnar.times import Times
from cedr.operators.patterns.forms import form_of
from cedr.operators.patterns.instances import Columns, Mask
from cedr.plan.patterns.parts import PatternPart


class Headers:
    """Headers of instances over a list of events, of which these are starts and ids.

    Where events are versions, which have a header of their own, `ends` are given, and ids are used unchanged.
    """

    def __init__(self, vs: Times, ids: Times, ends: Times | None = None) -> None:
        self.event_vs, self.event_ids, self.event_ve = vs, ids, ends

    def present(self, part: PatternPart, columns: Columns) -> Mask:
        """Whether the part takes part in the instance."""
        return form_of(part).present(part, columns, self)

    def start(self, part: PatternPart, columns: Columns) -> Times:
        """Where a part takes no part, the start means nothing."""
        return form_of(part).start(part, columns, self)

    def starts(self, part: PatternPart, columns: Columns, otherwise: int) -> list[Times]:
        """The starts of its parameters, `otherwise` where one takes no part."""
        return [np.where(self.present(p, columns), self.start(p, columns), otherwise) for p in part.positive]

    def contributor(self, part: PatternPart, columns: Columns, n: int) -> Times:
        """The start of the n-th contributor, counted from 1."""
        return form_of(part).contributor(part, columns, n, self)

    def end(self, part: PatternPart, columns: Columns, vs: Times) -> Times:
        """The end of instances that start at `vs`."""
        return form_of(part).end(part, columns, vs, self)

    def root(self, part: PatternPart, columns: Columns) -> Times:
        return form_of(part).root(part, columns, self)

    def id(self, part: PatternPart, columns: Columns) -> Times:
        return form_of(part).id(part, columns, self)
