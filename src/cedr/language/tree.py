"""The syntax tree: the query as frozen data, with the place of each node in the text.

Places are ignored when trees are compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Literal, NamedTuple

from cedr.temporal.duration import duration
from cedr.temporal.time import INF


class Place(NamedTuple):
    """Lines and columns from 1; the end is the first column after."""

    line: int = 1
    column: int = 1
    end_line: int = 1
    end_column: int = 1


@dataclass(frozen=True)
class Syntax:
    at: Place = field(default=Place(), compare=False, repr=False, kw_only=True)


def parts(node: Syntax) -> list["Syntax"]:
    """The direct parts of a node."""
    values = [getattr(node, f.name) for f in fields(node)]
    flat = [part for value in values for part in (value if isinstance(value, tuple) else (value,))]
    return [part for part in flat if isinstance(part, Syntax)]


def walk(node: Syntax) -> Iterator["Syntax"]:
    """A node and everything in it."""
    yield node
    for part in parts(node):
        yield from walk(part)


def depth(tree: Syntax) -> int:
    """The depth of the tree, computed without recursion, so that any tree works."""
    deepest, waiting = 0, [(tree, 1)]
    while waiting:
        node, level = waiting.pop()
        deepest = max(deepest, level)
        waiting += [(part, level + 1) for part in parts(node)]
    return deepest


# --- scalar expressions --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scalar(Syntax):
    """Anything that has a value."""


@dataclass(frozen=True)
class Number(Scalar):
    """An unsigned number as written: `1` is whole, `1.0` is not."""

    text: str

    @property
    def value(self) -> int | float:
        return int(self.text) if self.text.isdecimal() else float(self.text)


@dataclass(frozen=True)
class Length(Scalar):
    """A duration, numbers with their units: `1 hour 30 minutes`."""

    parts: tuple[tuple[str, str], ...]

    @property
    def value(self) -> int:
        return duration(" ".join(f"{number} {unit}" for number, unit in self.parts), least=0)


@dataclass(frozen=True)
class Infinity(Scalar):
    """Infinity."""

    value = INF


@dataclass(frozen=True)
class Text(Scalar):
    value: str


@dataclass(frozen=True)
class Timestamp(Scalar):
    """A point in time; `value` is its chronon."""

    text: str
    value: int = field(compare=False)


@dataclass(frozen=True)
class Truth(Scalar):
    value: bool


@dataclass(frozen=True)
class Null(Scalar):
    value = None


@dataclass(frozen=True)
class Column(Scalar):
    """`variable.name`, or `name` alone."""

    variable: str | None
    name: str


@dataclass(frozen=True)
class Star(Scalar):
    """`*` or `x.*`."""

    variable: str | None = None


@dataclass(frozen=True)
class Minus(Scalar):
    operand: Scalar


@dataclass(frozen=True)
class Not(Scalar):
    operand: Scalar


@dataclass(frozen=True)
class Binary(Scalar):
    """Arithmetic or comparison."""

    sign: str
    left: Scalar
    right: Scalar


@dataclass(frozen=True)
class And(Scalar):
    operands: tuple[Scalar, ...]


@dataclass(frozen=True)
class Or(Scalar):
    operands: tuple[Scalar, ...]


def conjuncts(condition: Scalar | None) -> tuple[Scalar, ...]:
    """The conditions that must all hold."""
    if condition is None:
        return ()
    return condition.operands if isinstance(condition, And) else (condition,)


@dataclass(frozen=True)
class IsNull(Scalar):
    operand: Scalar
    negated: bool = False


@dataclass(frozen=True)
class Between(Scalar):
    operand: Scalar
    low: Scalar
    high: Scalar
    negated: bool = False


@dataclass(frozen=True)
class In(Scalar):
    operand: Scalar
    items: tuple[Scalar, ...]
    negated: bool = False


@dataclass(frozen=True)
class Like(Scalar):
    operand: Scalar
    pattern: str
    negated: bool = False


@dataclass(frozen=True)
class When(Syntax):
    condition: Scalar
    value: Scalar


@dataclass(frozen=True)
class Case(Scalar):
    subject: Scalar | None
    whens: tuple[When, ...]
    otherwise: Scalar | None


@dataclass(frozen=True)
class Cast(Scalar):
    operand: Scalar
    type: str


@dataclass(frozen=True)
class Call(Scalar):
    """A function or an aggregate; `COUNT(*)` has a star as its argument."""

    name: str
    arguments: tuple[Scalar, ...]


@dataclass(frozen=True)
class CorrelationKey(Scalar):
    attribute: str
    mode: Literal["EQUAL", "UNIQUE"]


@dataclass(frozen=True)
class AttributeEqual(Scalar):
    """`[attribute EQUAL value]`."""

    attribute: str
    value: Scalar


# --- patterns ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pattern(Syntax):
    var: str | None = field(default=None, kw_only=True)
    selection: Literal["EACH", "FIRST", "LAST"] | None = field(default=None, kw_only=True)
    consumption: Literal["REUSE", "CONSUME"] | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class EventType(Pattern):
    name: str


@dataclass(frozen=True)
class Operator(Pattern):
    """A pattern operator with its arguments as written: patterns, numbers, durations."""

    keyword: str
    arguments: tuple[Pattern | Number | Length, ...]


# --- tables --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Months(Syntax):
    """Months or years of a calendar, which have no fixed length: `3 months`."""

    count: str
    unit: Literal["month", "year"]


@dataclass(frozen=True)
class Zone(Syntax):
    """The time zone of the calendar, and the time after midnight at which windows begin."""

    name: str
    offset: Number | Length | None = None


@dataclass(frozen=True)
class Window(Syntax):
    keyword: Literal["SLIDING", "TUMBLING", "HOPPING", "SESSION"]
    length: Number | Length | Months
    every: Number | Length | Months | None = None
    by: tuple[str, ...] = ()
    zone: Zone | None = None


@dataclass(frozen=True)
class Table(Syntax):
    name: str
    alias: str | None = None
    window: Window | None = None


@dataclass(frozen=True)
class Join(Syntax):
    how: Literal["INNER", "LEFT", "FULL", "SEMI", "ANTI"]
    table: Table
    on: Scalar


@dataclass(frozen=True)
class Item(Syntax):
    """One entry of OUTPUT or SELECT."""

    value: Scalar
    alias: str | None = None


@dataclass(frozen=True)
class Select(Syntax):
    items: tuple[Item, ...]
    table: Table
    joins: tuple[Join, ...] = ()
    where: Scalar | None = None
    group_by: tuple[Column, ...] = ()
    having: Scalar | None = None
    distinct: bool = False


@dataclass(frozen=True)
class Compound(Syntax):
    left: "Select | Compound"
    keyword: Literal["UNION", "EXCEPT", "INTERSECT"]
    right: Select


# --- regular expressions, of which `cedr.language.automata.tree` has the parts --------------------------------------


@dataclass(frozen=True)
class Assignment(Syntax):
    """`register = value`."""

    name: str
    value: Scalar


@dataclass(frozen=True)
class Define(Syntax):
    """The condition for a step, and the registers it sets."""

    name: str
    condition: Scalar | None = None
    sets: tuple[Assignment, ...] = ()


@dataclass(frozen=True)
class Over(Syntax):
    """The stream of events, with its key and order."""

    name: str
    by: tuple[str, ...] = ()
    order: str | None = None


# --- statements ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval(Syntax):
    """`[start, end)`; what is missing is open."""

    start: Scalar | None = None
    end: Scalar | None = None


@dataclass(frozen=True)
class Slice(Syntax):
    """`@ occurrence # valid`."""

    occurrence: Interval | None = None
    valid: Interval | None = None


@dataclass(frozen=True)
class PatternQuery(Syntax):
    pattern: Pattern
    where: Scalar | None = None
    output: tuple[Item, ...] = ()
    slice: Slice | None = None


@dataclass(frozen=True)
class TableQuery(Syntax):
    table: Select | Compound
    slice: Slice | None = None


@dataclass(frozen=True)
class RegexQuery(Syntax):
    expression: Syntax
    window: Number | Length | None = None
    var: str | None = None
    over: Over | None = None
    registers: tuple[Assignment, ...] = ()
    defines: tuple[Define, ...] = ()
    where: Scalar | None = None
    output: tuple[Item, ...] = ()
    slice: Slice | None = None


@dataclass(frozen=True)
class LoopQuery(Syntax):
    """The SELECTs between UNIONs that do not read the statement itself are its seed."""

    table: Select | Compound
    slice: Slice | None = None


@dataclass(frozen=True)
class Consistency(Syntax):
    """The name of a level, or two durations."""

    level: Literal["STRONG", "MIDDLE", "WEAK"] | None = None
    block: Number | Length | Infinity | None = None
    remember: Number | Length | Infinity | None = None


@dataclass(frozen=True)
class Statement(Syntax):
    name: str
    body: PatternQuery | RegexQuery | TableQuery | LoopQuery
    consistency: Consistency | None = None
    latency: Literal["perfect", "ordered", "eager"] | None = None


@dataclass(frozen=True)
class Script(Syntax):
    statements: tuple[Statement, ...]
