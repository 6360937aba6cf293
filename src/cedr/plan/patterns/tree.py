"""Event patterns and conditions: the operators of the CEDR language as data.

A pattern is a tree of event types and operators, each of which may have a variable. Expressions read the columns of a
match: `x.load` is an attribute of the event bound to x; `x.Vs`, `x.Rt` and `x.Id` are its header; `Vs`, `Ve`, `Rt`,
`Id` and `cbt` the header of the match itself. Where the parameter of a variable takes no part (ATLEAST, ANY), its
columns are missing.

An operator states here all that can be known of it before any event arrives: how it is written, its parameters, its
rules, and how far it looks (`parts` explains the lengths of time). Where it has a number of events, that is `n`; its
scope is `w`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import polars as pl

from cedr.temporal.errors import QueryError
from cedr.temporal.time import as_time

if TYPE_CHECKING:
    from cedr.plan.patterns.parts import PatternPart

Selection = Literal["EACH", "FIRST", "LAST"]
Consumption = Literal["REUSE", "CONSUME"]
Role = Literal["positive", "counted", "negated"]
ROLES: tuple[Role, ...] = ("positive", "counted", "negated")
"""In the order of `walk`."""

FAR = 2**62
"""A length of time that is too large to be added."""
MOST_COUNTED = 2**31


class PatternError(QueryError):
    """A pattern that breaks a rule; `about` is the part at fault or the name of the output, `argument` the number or
    scope of that part if that is wrong."""

    def __init__(
        self, problem: str, about: "Pattern | str | None" = None, argument: Literal["n", "w"] | None = None
    ) -> None:
        super().__init__(problem)
        self.about, self.argument = about, argument


@dataclass(frozen=True)
class OperatorArguments:
    """What an operator takes in the CEDR language: KEYWORD(number, parameters, number of a contributor, scope)."""

    roles: tuple[Role, ...]
    """The roles of the parameters in the order in which they are written; a single role is that of any number of
    parameters."""
    number: Literal["first", "contributor"] | None = None
    """`n`: before the parameters, the number of events it counts; or, optionally, before the scope."""
    scope: bool = True

    def check_parameters(self, keyword: str, example: str, count: int) -> None:
        if not count:
            raise PatternError(f"{keyword} names no event type; write {example}")
        if len(self.roles) > 1 and count != len(self.roles):
            required = {2: "two", 3: "three"}.get(len(self.roles), len(self.roles))
            raise PatternError(f"{keyword} takes {required} parameters, not {count}; write {example}")


# --- patterns ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pattern:
    keyword: ClassVar[str] = ""
    example: ClassVar[str] = ""
    """How it is written in the CEDR language."""
    arguments: ClassVar[OperatorArguments] = OperatorArguments(("positive",))
    chooses: ClassVar[bool] = False
    """Whether its parameters can be selected and consumed."""
    in_any_order: ClassVar[bool] = False
    """Whether its parameters may come in any order."""
    keeps_lifetimes: ClassVar[bool] = False
    """Whether its matches live as long as what it keeps. Then it keeps every single event, as only the starts of events
    are compared; an operator for which that is wrong rejects an event type in `check`, as NOT does."""
    var: str | None = field(default=None, kw_only=True)
    selection: Selection = field(default="EACH", kw_only=True)
    consumption: Consumption = field(default="REUSE", kw_only=True)

    def __str__(self) -> str:
        return self.keyword

    @classmethod
    def written(cls, parameters: tuple["Pattern", ...], n: int | None, w: int | None, **naming: Any) -> Self:
        """The operator with these arguments, its parameters in the order in which they are written."""
        return cls(**cls.parameters_by_name(parameters), **given_numbers(n, w), **naming)

    @classmethod
    def parameters_by_name(cls, parameters: tuple["Pattern", ...]) -> dict[str, Any]:
        return {"parameters": parameters}

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
    def leaves_out(self) -> bool:
        """Whether some of its parameters take no part in a match."""
        return False

    @property
    def numbers(self) -> tuple[int, ...]:
        """Its number of events and its scope, as far as it has them."""
        return tuple(n for n in (getattr(self, "n", None), self.scope) if n is not None)

    @property
    def scope(self) -> int | None:
        """How long it takes at most."""
        return getattr(self, "w", None)

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

    # --- rules -----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Reject an operator that cannot match, whatever comes."""

    def check_useful(self) -> None:
        """Reject an operator that has a meaning, but certainly not the intended one."""

    # --- lengths of time, from those of its parts --------------------------------------------------------------------

    def span(self, part: "PatternPart") -> int:
        """By how much its first contributor may start before it."""
        return 0

    def reach(self, part: "PatternPart", child: "PatternPart") -> int:
        """By how much instances of a child may start before its own."""
        return 0

    def beyond(self, part: "PatternPart", child: "PatternPart") -> int:
        """By how much instances of a child may start after its own."""
        return 0

    def settled(self, part: "PatternPart") -> int:
        """How long to wait after its start until it is final."""
        return 0


@dataclass(frozen=True)
class EventType(Pattern):
    """All events of one type: the rows of input `port` for which `where` holds (all, when it is None)."""

    name: str
    port: int = 0
    where: pl.Expr | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.name

    @property
    def contributors(self) -> int:
        return 0


class OrderedPattern(Pattern):
    """Events one after the other, within a scope."""

    chooses: ClassVar = True
    parameters: tuple[Pattern, ...]
    w: int

    @property
    def positive(self) -> tuple[Pattern, ...]:
        return self.parameters

    def check(self) -> None:
        check_parameters(self)
        check_scope(self)

    def span(self, part: "PatternPart") -> int:
        return min(self.w, FAR) if self.contributors > 1 else 0

    def reach(self, part: "PatternPart", child: "PatternPart") -> int:
        return part.span


@dataclass(frozen=True)
class Sequence(OrderedPattern):
    keyword: ClassVar = "SEQUENCE"
    example: ClassVar = "SEQUENCE(A x, B y, 5 minutes)"
    parameters: tuple[Pattern, ...]
    w: int

    @property
    def contributors(self) -> int:
        return len(self.parameters)

    def settled(self, part: "PatternPart") -> int:
        if part.consumes:
            return settled_with_all(part)
        return max(part.positive[-1].settled, *settled_before(part))


@dataclass(frozen=True)
class AtLeast(OrderedPattern):
    """ALL(E1..Ek, w) is AtLeast(k, ..), ANY(E1..Ek) is AtLeast(1, .., 1)."""

    keyword: ClassVar = "ATLEAST"
    example: ClassVar = "ATLEAST(2, A x, B y, C z, 5 minutes)"
    arguments: ClassVar = OperatorArguments(("positive",), "first")
    in_any_order: ClassVar = True
    n: int
    parameters: tuple[Pattern, ...]
    w: int
    short_form: Literal["ALL", "ANY"] | None = field(default=None, kw_only=True, compare=False, repr=False)
    """How the query wrote it, for error messages."""

    def __str__(self) -> str:
        return self.short_form or self.keyword

    @classmethod
    def all_of(cls, parameters: tuple[Pattern, ...], n: int | None, w: int | None, **naming: Any) -> Self:
        return cls.written(parameters, len(parameters), w, short_form="ALL", **naming)

    @classmethod
    def any_of(cls, parameters: tuple[Pattern, ...], n: int | None, w: int | None, **naming: Any) -> Self:
        return cls.written(parameters, 1, 1, short_form="ANY", **naming)

    @property
    def contributors(self) -> int:
        return self.n

    @property
    def leaves_out(self) -> bool:
        return self.n < len(self.parameters)

    def check(self) -> None:
        super().check()
        if not 1 <= self.n <= len(self.parameters):
            limit = f"from 1 to {len(self.parameters)}, the number of its parameters"
            raise PatternError(f"{self} counts {self.n} events; the number must be {limit}", self, "n")

    def settled(self, part: "PatternPart") -> int:
        return settled_with_all(part) if part.consumes else max(p.settled for p in part.positive)


@dataclass(frozen=True)
class AtMost(Pattern):
    keyword: ClassVar = "ATMOST"
    example: ClassVar = "ATMOST(3, A, B, 5 minutes)"
    arguments: ClassVar = OperatorArguments(("counted",), "first")
    n: int
    parameters: tuple[Pattern, ...]
    w: int

    @property
    def counted(self) -> tuple[Pattern, ...]:
        return self.parameters

    def check(self) -> None:
        check_parameters(self)
        check_scope(self)
        if not 1 <= self.n <= MOST_COUNTED:
            limit = "at least 1" if self.n < 1 else f"at most {MOST_COUNTED}"
            raise PatternError(f"{self} counts {self.n} events; the number must be {limit}", self, "n")

    def span(self, part: "PatternPart") -> int:
        return min(self.w, FAR)

    def reach(self, part: "PatternPart", child: "PatternPart") -> int:
        return self.w

    def beyond(self, part: "PatternPart", child: "PatternPart") -> int:
        return self.w

    def settled(self, part: "PatternPart") -> int:
        return settled_with_all(part)


@dataclass(frozen=True)
class Negation(Pattern):
    """`kept` with no `forbidden` at certain times."""

    arguments: ClassVar = OperatorArguments(("positive", "negated"), scope=False)
    kept: Pattern
    forbidden: Pattern

    @classmethod
    def parameters_by_name(cls, parameters: tuple[Pattern, ...]) -> dict[str, Any]:
        by_role = dict(zip(cls.arguments.roles, parameters, strict=True))
        return {"kept": by_role["positive"], "forbidden": by_role["negated"]}

    @property
    def positive(self) -> tuple[Pattern, ...]:
        return (self.kept,)

    @property
    def negated(self) -> tuple[Pattern, ...]:
        return (self.forbidden,)

    @property
    def contributors(self) -> int:
        return self.kept.contributors

    def span(self, part: "PatternPart") -> int:
        return part.kept.span

    def settled(self, part: "PatternPart") -> int:
        return max(part.kept.settled, settled_before(part)[1])


@dataclass(frozen=True)
class Unless(Negation):
    """UNLESS(kept, forbidden, w), or UNLESS(kept, forbidden, n, w) when n is given."""

    keyword: ClassVar = "UNLESS"
    example: ClassVar = "UNLESS(A x, B y, 5 minutes)"
    arguments: ClassVar = OperatorArguments(("positive", "negated"), "contributor")
    w: int
    n: int | None = None

    @property
    def contributors(self) -> int:
        return 1

    def check(self) -> None:
        check_scope(self)
        if self.n is not None and not 1 <= self.n <= self.kept.contributors:
            raise PatternError(
                f"UNLESS counts its scope from contributor {self.n} of its first parameter, which has "
                f"{self.kept.contributors or 'none: it is an event type, so leave the number out'}",
                self,
                "n",
            )

    def span(self, part: "PatternPart") -> int:
        return 0 if self.n is None else min(self.w, FAR)

    def reach(self, part: "PatternPart", child: "PatternPart") -> int:
        if self.n is None:
            return 0
        return self.w if child is part.kept else max(self.w, part.kept.span)

    def beyond(self, part: "PatternPart", child: "PatternPart") -> int:
        return self.w - 1 if self.n is None and child is part.forbidden else 0

    def settled(self, part: "PatternPart") -> int:
        if self.n is not None:
            return super().settled(part)
        return max(part.kept.settled, self.w + settled_before(part)[1]) if self.w > 1 else part.kept.settled


@dataclass(frozen=True)
class Not(Negation):
    """NOT(forbidden, kept); kept is a Sequence or AtLeast."""

    keyword: ClassVar = "NOT"
    example: ClassVar = "NOT(C z, SEQUENCE(A x, B y, 5 minutes))"
    arguments: ClassVar = OperatorArguments(("negated", "positive"), scope=False)
    keeps_lifetimes: ClassVar = True

    def check(self) -> None:
        if not self.kept.chooses:
            found = f"the event type {self.kept}" if isinstance(self.kept, EventType) else str(self.kept)
            raise PatternError(
                f"NOT applies between the first and the last event of a sequence, but its second parameter is {found}; "
                f"write {self.example}, or use UNLESS or CANCEL-WHEN",
                self.kept,
            )

    def reach(self, part: "PatternPart", child: "PatternPart") -> int:
        return part.kept.span if child is part.forbidden else 0


@dataclass(frozen=True)
class CancelWhen(Negation):
    keyword: ClassVar = "CANCEL-WHEN"
    example: ClassVar = "CANCEL-WHEN(SEQUENCE(A x, B y, 5 minutes), C z)"
    keeps_lifetimes: ClassVar = True

    def check_useful(self) -> None:
        if isinstance(self.kept, EventType):
            raise PatternError(
                f"CANCEL-WHEN cancels a match while it is being completed, but {self.kept} is a single event, which is "
                f"complete at once; write {self.example}",
                self.kept,
            )

    def reach(self, part: "PatternPart", child: "PatternPart") -> int:
        return part.kept.root if child is part.forbidden else 0


OPERATORS: tuple[type[Pattern], ...] = (Sequence, AtLeast, AtMost, Unless, Not, CancelWhen)


# --- what several operators have in common ---------------------------------------------------------------------------


def given_numbers(n: int | None, w: int | None) -> dict[str, Any]:
    return {name: number for name, number in (("n", n), ("w", w)) if number is not None}


def check_parameters(pattern: Pattern) -> None:
    count = len(pattern.positive) + len(pattern.counted) + len(pattern.negated)
    pattern.arguments.check_parameters(str(pattern), pattern.example, count)


def check_scope(pattern: Pattern) -> None:
    if as_time(pattern.scope, f"the scope of {pattern}") < 1:
        raise PatternError(f"the scope of {pattern} is empty; it must be at least one chronon", pattern, "w")


def settled_before(part: "PatternPart") -> list[int]:
    """When its children are settled that start before it, not with it: a chronon earlier."""
    return [max(p.settled - 1, 0) for p in part.children]


def settled_with_all(part: "PatternPart") -> int:
    """When all that starts with it matters."""
    return 1 + max(settled_before(part))


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

    def __str__(self) -> str:
        return f"CorrelationKey({self.attribute}, {self.mode})"


@dataclass(frozen=True)
class AttributeEqual:
    attribute: str
    value: Any

    def __str__(self) -> str:
        return f"[{self.attribute} EQUAL {self.value!r}]"


Condition = Predicate | CorrelationKey | AttributeEqual
