"""A pattern made ready to run: each of its patterns as a `PatternPart`, with what can be known before any event comes.

A match of a part that starts at v depends on events from `v - back` to `v + ahead` only. So a changed event at c can
change matches from `c - ahead` to `c + back` only, and what lies before can be forgotten. `settled` is how long to
wait: once no event before `v + settled` can come any more, the matches at v are final. Lengths of time too
large to be added are FAR. The operators state them, see `tree`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from cedr.plan.patterns.tree import FAR, EventType, Pattern, PatternError, Predicate

HEADER = ("vs", "ve", "low", "high", "first", "rt", "id", "key")
"""The columns of an ATMOST."""


@dataclass(eq=False)
class PatternPart:
    pattern: Pattern
    number: int
    """Its place among all parts."""
    leaf: int
    """Its place among the event types, or -1."""
    bit: int
    """Event types: the first one that accepts the same events; events are marked for that one only."""
    positive: tuple["PatternPart", ...]
    counted: tuple["PatternPart", ...]
    negated: tuple["PatternPart", ...]
    predicates: list[Predicate] = field(default_factory=list)
    """The predicates that are evaluated here: all their variables have a value here for the first time."""
    at_entry: list[Predicate] = field(default_factory=list)
    """Event types: the predicates about one event alone, evaluated when it arrives."""
    bound: bool = False
    """Negations: which events forbid depends on the instance they would forbid."""
    scope: int = 0
    """By how much the instances needed of it may start before those needed of the whole pattern."""
    back: int = 0
    ahead: int = 0
    settled: int = 0
    same_as: "PatternPart | None" = None
    """The first part that is the same but for its variables; see `sharing`."""
    repeated: bool = False
    """Whether other parts are the same as this one."""
    span: int = 0
    """By how much its first contributor may start before it."""
    root: int = 0
    """By how much its root time may lie before its start."""

    @property
    def children(self) -> tuple["PatternPart", ...]:
        return (*self.positive, *self.counted, *self.negated)

    @property
    def kept(self) -> "PatternPart":
        return self.positive[0]

    @property
    def forbidden(self) -> "PatternPart":
        return self.negated[0]

    @property
    def consumes(self) -> bool:
        """Whether it uses up instances of its parameters itself."""
        return self.pattern.chooses and any(p.pattern.consumption == "CONSUME" for p in self.positive)

    @property
    def selects(self) -> bool:
        return self.pattern.chooses and any(p.pattern.selection != "EACH" for p in self.positive)

    def walk(self) -> Iterator["PatternPart"]:
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> list["PatternPart"]:
        """The event types in it, however deep."""
        return [p for p in self.walk() if p.leaf >= 0]

    def positive_leaves(self) -> list["PatternPart"]:
        """The event types of which each instance has one event, if any."""
        return [self] if self.leaf >= 0 else [leaf for p in self.positive for leaf in p.positive_leaves()]

    def counting(self) -> list["PatternPart"]:
        """The ATMOST of which each instance has one snapshot, if any."""
        if self.counted:
            return [self]
        return [found for p in self.positive for found in p.counting()]

    def columns(self) -> list[int | tuple[int, str]]:
        """The columns of its instances."""
        own: list[int | tuple[int, str]] = [p.leaf for p in self.positive_leaves()]
        return own + [(p.number, name) for p in self.counting() for name in HEADER]

    def all_columns(self) -> list[int | tuple[int, str]]:
        """The columns of its instances, and of those of all parts in it."""
        return list(dict.fromkeys(c for p in self.walk() for c in p.columns()))

    def named(self, variable: str) -> "PatternPart | None":
        """The part a variable of an instance belongs to."""
        if self.pattern.var == variable:
            return self
        return next((found for p in self.positive if (found := p.named(variable))), None)


def parts_of(pattern: Pattern, predicates: tuple[Predicate, ...], unique: bool = False) -> PatternPart:
    """The whole pattern as parts, with each predicate where it is evaluated.

    `unique`: some attribute must differ between all contributors, so every negation looks at what it would forbid.
    """
    numbers, leaves = iter(range(FAR)), iter(range(FAR))

    def build(pattern: Pattern) -> PatternPart:
        number = next(numbers)
        leaf = next(leaves) if isinstance(pattern, EventType) else -1
        positive, counted, negated = (
            tuple(build(p) for p in params) for params in (pattern.positive, pattern.counted, pattern.negated)
        )
        part = PatternPart(pattern, number, leaf, leaf, positive, counted, negated)
        measure(part)
        return part

    root = build(pattern)
    ask(root, predicates, frozenset())
    set_scopes(root, 0)
    for part in root.walk():
        part.bound = part.bound or (unique and bool(part.negated))
        if part.bound and any(p.consumes for p in part.forbidden.walk()):
            raise PatternError(
                f"{part.pattern}: WHERE compares its negated parameter {part.forbidden.pattern} with the other, but "
                "CONSUME is used in the negated one; remove CONSUME there, or compare only with "
                "CorrelationKey(..., EQUAL)"
            )
    return root


# --- lengths of time -----------------------------------------------------------------------------------------------


def measure(part: PatternPart) -> None:
    """How far a part looks, from how far its children do."""
    pattern = part.pattern
    part.span = pattern.span(part)
    roots = max((p.root for p in (*part.positive, *part.counted)), default=0)
    part.root = min(FAR, roots + (0 if pattern.keeps_lifetimes else part.span))
    for child in part.children:
        part.back = min(FAR, max(part.back, pattern.reach(part, child) + child.back))
        part.ahead = min(FAR, max(part.ahead, pattern.beyond(part, child) + child.ahead))
    part.settled = min(FAR, pattern.settled(part))


def set_scopes(part: PatternPart, scope: int) -> None:
    part.scope = scope
    for child in part.children:
        set_scopes(child, min(FAR, scope + part.pattern.reach(part, child)))


# --- predicates ----------------------------------------------------------------------------------------------------


def ask(part: PatternPart, predicates: tuple[Predicate, ...], outer: frozenset[str]) -> None:
    """Put predicates where their variables have a value for the first time, going down as far as possible."""
    own = part.pattern.variables
    here = [p for p in predicates if own & set(p.variables) and set(p.variables) <= own | outer]
    part.predicates = [p for p in here if not any(can_evaluate(p, child, outer) for child in part.positive)]
    if part.leaf >= 0:
        part.at_entry = [p for p in part.predicates if len(set(p.variables)) == 1 and not reads_id(p)]
        part.predicates = [p for p in part.predicates if all(p is not q for q in part.at_entry)]
    for child in (*part.positive, *part.counted):
        ask(child, predicates, outer)
    for child in part.negated:
        ask(child, predicates, outer | part.kept.pattern.variables)
        kept = part.kept.pattern.variables
        part.bound = any(kept & set(p.variables) for inner in child.walk() for p in inner.predicates)


def reads_id(predicate: Predicate) -> bool:
    """An event's id is known only when it has its place among equal events."""
    return any(name.endswith(".Id") for name in predicate.expression.meta.root_names())


def can_evaluate(predicate: Predicate, part: PatternPart, outer: frozenset[str]) -> bool:
    own, names = part.pattern.variables, set(predicate.variables)
    return bool(own & names) and names <= own | outer
