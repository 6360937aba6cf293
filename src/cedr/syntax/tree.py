"""The syntax tree: the query as frozen data, with the position of each node in the text.

Positions are ignored when trees are compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Literal, NamedTuple

from cedr.temporal.duration import duration
from cedr.temporal.time import INF


class TextPosition(NamedTuple):
    """Lines and columns from 1; the end is the first column after."""

    line: int = 1
    column: int = 1
    end_line: int = 1
    end_column: int = 1


@dataclass(frozen=True)
class Syntax:
    at: TextPosition = field(default=TextPosition(), compare=False, repr=False, kw_only=True)


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
class ParsedScalar(Syntax):
    """Anything that has a value."""


@dataclass(frozen=True)
class ParsedNumber(ParsedScalar):
    """An unsigned number as written: `1` is whole, `1.0` is not."""

    text: str

    @property
    def value(self) -> int | float:
        return int(self.text) if self.text.isdecimal() else float(self.text)


@dataclass(frozen=True)
class ParsedLength(ParsedScalar):
    """A duration, numbers with their units: `1 hour 30 minutes`."""

    parts: tuple[tuple[str, str], ...]

    @property
    def value(self) -> int:
        return duration(" ".join(f"{number} {unit}" for number, unit in self.parts), least=0)


@dataclass(frozen=True)
class ParsedInfinity(ParsedScalar):
    """Infinity."""

    value = INF


@dataclass(frozen=True)
class ParsedText(ParsedScalar):
    value: str


@dataclass(frozen=True)
class ParsedTimestamp(ParsedScalar):
    """A point in time; `value` is its chronon."""

    text: str
    value: int = field(compare=False)


@dataclass(frozen=True)
class ParsedTruth(ParsedScalar):
    value: bool


@dataclass(frozen=True)
class ParsedNull(ParsedScalar):
    value = None


@dataclass(frozen=True)
class ParsedColumn(ParsedScalar):
    """`variable.name`, or `name` alone."""

    variable: str | None
    name: str


@dataclass(frozen=True)
class ParsedStar(ParsedScalar):
    """`*` or `x.*`."""

    variable: str | None = None


@dataclass(frozen=True)
class ParsedMinus(ParsedScalar):
    operand: ParsedScalar


@dataclass(frozen=True)
class ParsedNot(ParsedScalar):
    operand: ParsedScalar


@dataclass(frozen=True)
class ParsedBinary(ParsedScalar):
    """Arithmetic or comparison."""

    sign: str
    left: ParsedScalar
    right: ParsedScalar


@dataclass(frozen=True)
class ParsedAnd(ParsedScalar):
    operands: tuple[ParsedScalar, ...]


@dataclass(frozen=True)
class ParsedOr(ParsedScalar):
    operands: tuple[ParsedScalar, ...]


def conjuncts(condition: ParsedScalar | None) -> tuple[ParsedScalar, ...]:
    """The conditions that must all hold."""
    if condition is None:
        return ()
    return condition.operands if isinstance(condition, ParsedAnd) else (condition,)


@dataclass(frozen=True)
class ParsedIsNull(ParsedScalar):
    operand: ParsedScalar
    negated: bool = False


@dataclass(frozen=True)
class ParsedBetween(ParsedScalar):
    operand: ParsedScalar
    low: ParsedScalar
    high: ParsedScalar
    negated: bool = False


@dataclass(frozen=True)
class ParsedIn(ParsedScalar):
    operand: ParsedScalar
    items: tuple[ParsedScalar, ...]
    negated: bool = False


@dataclass(frozen=True)
class ParsedLike(ParsedScalar):
    operand: ParsedScalar
    pattern: str
    negated: bool = False


@dataclass(frozen=True)
class ParsedWhen(Syntax):
    condition: ParsedScalar
    value: ParsedScalar


@dataclass(frozen=True)
class ParsedCase(ParsedScalar):
    subject: ParsedScalar | None
    whens: tuple[ParsedWhen, ...]
    otherwise: ParsedScalar | None


@dataclass(frozen=True)
class ParsedCast(ParsedScalar):
    operand: ParsedScalar
    type: str


@dataclass(frozen=True)
class ParsedCall(ParsedScalar):
    """A function or an aggregate; `COUNT(*)` has a star as its argument."""

    name: str
    arguments: tuple[ParsedScalar, ...]


@dataclass(frozen=True)
class ParsedCorrelationKey(ParsedScalar):
    attribute: str
    mode: Literal["EQUAL", "UNIQUE"]


@dataclass(frozen=True)
class ParsedAttributeEqual(ParsedScalar):
    """`[attribute EQUAL value]`."""

    attribute: str
    value: ParsedScalar


# --- patterns ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParsedPattern(Syntax):
    var: str | None = field(default=None, kw_only=True)
    selection: Literal["EACH", "FIRST", "LAST"] | None = field(default=None, kw_only=True)
    consumption: Literal["REUSE", "CONSUME"] | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class ParsedEventType(ParsedPattern):
    name: str


@dataclass(frozen=True)
class ParsedPatternOperator(ParsedPattern):
    """A pattern operator with its arguments as written: patterns, numbers, durations."""

    keyword: str
    arguments: tuple[ParsedPattern | ParsedNumber | ParsedLength, ...]


# --- tables --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParsedMonths(Syntax):
    """Months or years of a calendar, which have no fixed length: `3 months`."""

    count: str
    unit: Literal["month", "year"]


@dataclass(frozen=True)
class ParsedZone(Syntax):
    """The time zone of the calendar, and the time after midnight at which windows begin."""

    name: str
    offset: ParsedNumber | ParsedLength | None = None


@dataclass(frozen=True)
class ParsedWindow(Syntax):
    keyword: Literal["SLIDING", "TUMBLING", "HOPPING", "SESSION"]
    length: ParsedNumber | ParsedLength | ParsedMonths
    every: ParsedNumber | ParsedLength | ParsedMonths | None = None
    by: tuple[str, ...] = ()
    zone: ParsedZone | None = None


@dataclass(frozen=True)
class ParsedTable(Syntax):
    name: str
    alias: str | None = None
    window: ParsedWindow | None = None


@dataclass(frozen=True)
class ParsedJoin(Syntax):
    how: Literal["INNER", "LEFT", "FULL", "SEMI", "ANTI"]
    table: ParsedTable
    on: ParsedScalar


@dataclass(frozen=True)
class ParsedItem(Syntax):
    """One entry of OUTPUT or SELECT."""

    value: ParsedScalar
    alias: str | None = None


@dataclass(frozen=True)
class ParsedSelect(Syntax):
    items: tuple[ParsedItem, ...]
    table: ParsedTable
    joins: tuple[ParsedJoin, ...] = ()
    where: ParsedScalar | None = None
    group_by: tuple[ParsedColumn, ...] = ()
    having: ParsedScalar | None = None
    distinct: bool = False


@dataclass(frozen=True)
class ParsedCompound(Syntax):
    left: "ParsedSelect | ParsedCompound"
    keyword: Literal["UNION", "EXCEPT", "INTERSECT"]
    right: ParsedSelect


# --- regular expressions, of which `cedr.syntax.automata.tree` has the parts --------------------------------------


@dataclass(frozen=True)
class ParsedAssignment(Syntax):
    """`register = value`."""

    name: str
    value: ParsedScalar


@dataclass(frozen=True)
class ParsedDefine(Syntax):
    """The condition for a step, and the registers it sets."""

    name: str
    condition: ParsedScalar | None = None
    sets: tuple[ParsedAssignment, ...] = ()


@dataclass(frozen=True)
class ParsedOver(Syntax):
    """The stream of events, with its key and order."""

    name: str
    by: tuple[str, ...] = ()
    order: str | None = None


# --- statements ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParsedInterval(Syntax):
    """`[start, end)`; what is missing is open."""

    start: ParsedScalar | None = None
    end: ParsedScalar | None = None


@dataclass(frozen=True)
class ParsedSlice(Syntax):
    """`@ occurrence # valid`."""

    occurrence: ParsedInterval | None = None
    valid: ParsedInterval | None = None


@dataclass(frozen=True)
class ParsedPatternQuery(Syntax):
    pattern: ParsedPattern
    where: ParsedScalar | None = None
    output: tuple[ParsedItem, ...] = ()
    slice: ParsedSlice | None = None


@dataclass(frozen=True)
class ParsedTableQuery(Syntax):
    table: ParsedSelect | ParsedCompound
    slice: ParsedSlice | None = None


@dataclass(frozen=True)
class ParsedRegexQuery(Syntax):
    expression: Syntax
    window: ParsedNumber | ParsedLength | None = None
    var: str | None = None
    over: ParsedOver | None = None
    registers: tuple[ParsedAssignment, ...] = ()
    defines: tuple[ParsedDefine, ...] = ()
    where: ParsedScalar | None = None
    output: tuple[ParsedItem, ...] = ()
    slice: ParsedSlice | None = None


@dataclass(frozen=True)
class ParsedLoopQuery(Syntax):
    """The SELECTs between UNIONs that do not read the statement itself are its seed."""

    table: ParsedSelect | ParsedCompound
    slice: ParsedSlice | None = None


@dataclass(frozen=True)
class ParsedConsistency(Syntax):
    """The name of a level, or two durations."""

    level: Literal["STRONG", "MIDDLE", "WEAK"] | None = None
    block: ParsedNumber | ParsedLength | ParsedInfinity | None = None
    remember: ParsedNumber | ParsedLength | ParsedInfinity | None = None


@dataclass(frozen=True)
class ParsedStatement(Syntax):
    name: str
    body: ParsedPatternQuery | ParsedRegexQuery | ParsedTableQuery | ParsedLoopQuery
    consistency: ParsedConsistency | None = None
    latency: Literal["perfect", "ordered", "eager"] | None = None


@dataclass(frozen=True)
class ParsedScript(Syntax):
    statements: tuple[ParsedStatement, ...]
