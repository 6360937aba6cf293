"""The instances of a pattern over a set of events: a pure function, one step per operator, all instances at once.

How an operator finds them is in `forms`. What several parts find alike is computed for the first of them; the others
have it under the names of their columns.
"""

from cedr.columnar.chunk import Times
from cedr.operators.patterns.forms import form_of
from cedr.operators.patterns.headers import Headers
from cedr.operators.patterns.instances import Column, Instances, Scope
from cedr.operators.patterns.questions import Questions
from cedr.operators.patterns.selection import MatchSelection
from cedr.plan.patterns.parts import PatternPart


class Evaluation:
    """`slots` are the numbers under which events are stored, which identify them from one evaluation to the next."""

    def __init__(self, headers: Headers, questions: Questions, selection: MatchSelection, slots: Times) -> None:
        self.headers, self.questions, self.selection, self.slots = headers, questions, selection, slots
        self.members: dict[int, Instances] = {}
        """By the number of an ATMOST, the instances it counted, for lineage."""

    def instances(self, part: PatternPart, scope: Scope) -> Instances:
        if part.same_as is not None:
            return self._result_of_equal_part(part, part.same_as, scope)
        found = form_of(part).instances(part, scope, self)
        if part.repeated:
            scope.found[part.number] = found
        return found

    def _result_of_equal_part(self, part: PatternPart, first: PatternPart, scope: Scope) -> Instances:
        """What the first part like this one has found, as this part's."""
        names = column_mapping(first, part)
        for p, like in zip(part.walk(), first.walk(), strict=True):
            if like.number in self.members and not scope.context:
                self.members[p.number] = self.members[like.number].renamed(names)
        return scope.found[first.number].renamed(names)


def column_mapping(first: PatternPart, part: PatternPart) -> dict[Column, Column]:
    """The columns of a part by those of another with the same shape."""
    return dict(zip(first.all_columns(), part.all_columns(), strict=True))
