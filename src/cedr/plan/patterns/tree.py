"""Event patterns and conditions: the operators of the CEDR language as data.

A pattern is a tree of event types and operators, each of which may have a variable. Expressions read the columns of a
match: `x.load` is an attribute of the event bound to x; `x.Vs`, `x.Rt` and `x.Id` are its header; `Vs`, `Ve`, `Rt`,
`Id` and `cbt` the header of the match itself. Where the parameter of a variable takes no part (ATLEAST, ANY), its
columns are missing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import polars as pl

Selection = Literal["EACH", "FIRST", "LAST"]
Consumption = Literal["REUSE", "CONSUME"]


# --- patterns ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pattern:
    keyword: ClassVar = ""
    var: str | None = field(default=None, kw_only=True)
    selection: Selection = field(default="EACH", kw_only=True)
    consumption: Consumption = field(default="REUSE", kw_only=True)

    @property
    def positive(self) -> tuple["Pattern", ...]:
        """The parameters whose variables have one value in each match."""
        return ()

    @property
    def negated(self) -> tuple["Pattern", ...]:
        """The parameters that must not occur."""
        return ()

    @property
    def counted(self) -> tuple["Pattern", ...]:
        """The parameters that are only counted."""
        return ()

    @property
    def contributors(self) -> int:
        """How many contributors each match is sure to have."""
        return 1

    @property
    def variables(self) -> frozenset[str]:
        """The variables that have a value in each match, but for parameters that take no part."""
        return frozenset([self.var] if self.var else []).union(*(p.variables for p in self.positive))

    def walk(self) -> Iterator["Pattern"]:
        """Every pattern in it, itself first."""
        yield self
        for p in (*self.positive, *self.counted, *self.negated):
            yield from p.walk()

    def leaves(self) -> list["EventType"]:
        """The event types in it, in the order of `walk`; an operator and its plan number them so."""
        return [p for p in self.walk() if isinstance(p, EventType)]


@dataclass(frozen=True)
class EventType(Pattern):
    """All events of one type: the rows of input `port` for which `where` holds (all, when it is None)."""

    name: str
    port: int = 0
    where: pl.Expr | None = field(default=None, compare=False)

    @property
    def contributors(self) -> int:
        return 0


@dataclass(frozen=True)
class Sequence(Pattern):
    keyword: ClassVar = "SEQUENCE"
    parameters: tuple[Pattern, ...]
    w: int

    @property
    def positive(self) -> tuple[Pattern, ...]:
        return self.parameters

    @property
    def contributors(self) -> int:
        return len(self.parameters)


@dataclass(frozen=True)
class AtLeast(Pattern):
    """ALL(E1..Ek, w) is AtLeast(k, ..), ANY(E1..Ek) is AtLeast(1, .., 1)."""

    keyword: ClassVar = "ATLEAST"
    n: int
    parameters: tuple[Pattern, ...]
    w: int

    @property
    def positive(self) -> tuple[Pattern, ...]:
        return self.parameters

    @property
    def contributors(self) -> int:
        return self.n


@dataclass(frozen=True)
class AtMost(Pattern):
    keyword: ClassVar = "ATMOST"
    n: int
    parameters: tuple[Pattern, ...]
    w: int

    @property
    def counted(self) -> tuple[Pattern, ...]:
        return self.parameters


@dataclass(frozen=True)
class Negation(Pattern):
    """`kept` with no `forbidden` at certain times."""

    kept: Pattern
    forbidden: Pattern

    @property
    def positive(self) -> tuple[Pattern, ...]:
        return (self.kept,)

    @property
    def negated(self) -> tuple[Pattern, ...]:
        return (self.forbidden,)

    @property
    def contributors(self) -> int:
        return self.kept.contributors


@dataclass(frozen=True)
class Unless(Negation):
    """UNLESS(kept, forbidden, w), or UNLESS(kept, forbidden, n, w) when n is given."""

    keyword: ClassVar = "UNLESS"
    w: int
    n: int | None = None

    @property
    def contributors(self) -> int:
        return 1


@dataclass(frozen=True)
class Not(Negation):
    """NOT(forbidden, kept); kept is a Sequence or AtLeast."""

    keyword: ClassVar = "NOT"


@dataclass(frozen=True)
class CancelWhen(Negation):
    keyword: ClassVar = "CANCEL-WHEN"


# --- conditions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Predicate:
    """A truth value of the events bound to `variables`; a missing truth value counts as false."""

    variables: tuple[str, ...]
    expression: pl.Expr
    text: str = ""


@dataclass(frozen=True)
class CorrelationKey:
    attribute: str
    mode: Literal["EQUAL", "UNIQUE"] = "EQUAL"


@dataclass(frozen=True)
class AttributeEqual:
    attribute: str
    value: Any


Condition = Predicate | CorrelationKey | AttributeEqual
