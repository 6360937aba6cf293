"""From parse tree to syntax tree, one method per grammar rule. Bottom-up without recursion, so that any depth works.

`children` are the results of the parts of a rule: nodes, and tokens for keywords and names. Keywords are distinguished
by their terminal, everything else by its class.
"""

from typing import Any, NamedTuple, TypeVar

from lark import Token
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive, v_args

from cedr.syntax import tree
from cedr.syntax.automata import tree as regular
from cedr.syntax.automata.quantifiers import SIGNS, between
from cedr.syntax.errors import LanguageError
from cedr.syntax.literals import amount, checked, number, place, place_of, timestamp, unquoted
from cedr.temporal.duration import NAMES

Children = list[Any]
T = TypeVar("T")


class Clause(NamedTuple):
    """A clause that is to become part of a statement: its name and its value."""

    clause: str
    value: Any


@v_args(meta=True)
class Build(Transformer_NonRecursive[Token, tree.ParsedScript]):
    def QUOTED(self, token: Token) -> Token:  # noqa: N802 the terminal's name
        return token.update(value=token[1:-1].replace('""', '"'))

    # --- statements ------------------------------------------------------------------------------------------------

    def start(self, meta: Meta, children: Children) -> tree.ParsedScript:
        return tree.ParsedScript(tuple(children), at=place(meta))

    def expression(self, meta: Meta, children: Children) -> tree.ParsedScalar:
        found: tree.ParsedScalar = children[0]
        return found

    def statement(self, meta: Meta, children: Children) -> tree.ParsedStatement:
        name, body, *settings = children
        latency = clause(settings, "latency")
        return tree.ParsedStatement(
            str(name),
            body,
            first(settings, tree.ParsedConsistency),
            latency.lower() if latency else None,
            at=place_of(name),
        )

    def consistency(self, meta: Meta, children: Children) -> tree.ParsedConsistency:
        block, remember = clause(children, "block"), clause(children, "remember")
        return tree.ParsedConsistency(keyword(children, "LEVEL"), block, remember, at=place(meta))

    def block(self, meta: Meta, children: Children) -> Clause:
        return Clause("block", amount(children[0]))

    def remember(self, meta: Meta, children: Children) -> Clause:
        return Clause("remember", amount(children[0]))

    def latency(self, meta: Meta, children: Children) -> Clause:
        return Clause("latency", children[0])

    # --- patterns --------------------------------------------------------------------------------------------------

    def pattern_query(self, meta: Meta, children: Children) -> tree.ParsedPatternQuery:
        output = clause(children, "output") or ()
        return tree.ParsedPatternQuery(
            children[0], clause(children, "where"), output, the_slice(children), at=place(meta)
        )

    def event_type(self, meta: Meta, children: Children) -> tree.ParsedEventType:
        return tree.ParsedEventType(str(children[0]), at=place(meta), **as_parameter(children))

    def operator(self, meta: Meta, children: Children) -> tree.ParsedPatternOperator:
        arguments = tuple(
            c for c in children if isinstance(c, tree.ParsedPattern | tree.ParsedNumber | tree.ParsedLength)
        )
        operator = children[0].upper().replace("_", "-")
        return tree.ParsedPatternOperator(operator, arguments, at=place(meta), **as_parameter(children))

    def alias(self, meta: Meta, children: Children) -> Clause:
        return Clause("alias", str(children[0]))

    alias_as = alias

    def where(self, meta: Meta, children: Children) -> Clause:
        return Clause("where", children[0])

    def output(self, meta: Meta, children: Children) -> Clause:
        return Clause("output", tuple(children))

    def slice(self, meta: Meta, children: Children) -> tree.ParsedSlice:
        return tree.ParsedSlice(clause(children, "occurrence"), clause(children, "valid"), at=place(meta))

    def occurrence(self, meta: Meta, children: Children) -> Clause:
        return Clause("occurrence", interval(meta, children))

    def valid(self, meta: Meta, children: Children) -> Clause:
        return Clause("valid", interval(meta, children))

    def from_(self, meta: Meta, children: Children) -> Clause:
        return Clause("from", time(children))

    def to(self, meta: Meta, children: Children) -> Clause:
        return Clause("to", time(children))

    # --- regular expressions ---------------------------------------------------------------------------------------

    def regex_query(self, meta: Meta, children: Children) -> tree.ParsedRegexQuery:
        return tree.ParsedRegexQuery(
            **children[0].value,
            over=first(children, tree.ParsedOver),
            registers=clause(children, "registers") or (),
            defines=every(children, tree.ParsedDefine),
            where=clause(children, "where"),
            output=clause(children, "output") or (),
            slice=the_slice(children),
            at=place(meta),
        )

    def regex(self, meta: Meta, children: Children) -> Clause:
        window = first(children, tree.ParsedNumber) or first(children, tree.ParsedLength)
        found = {"expression": children[0], "window": window, "var": clause(children, "alias")}
        return Clause("regex", found)

    def choice(self, meta: Meta, children: Children) -> regular.RegexChoice:
        return regular.RegexChoice(tuple(children), at=place(meta))

    def succession(self, meta: Meta, children: Children) -> regular.RegexSequence:
        return regular.RegexSequence(tuple(children), at=place(meta))

    def repeated(self, meta: Meta, children: Children) -> regular.Regex:
        made: regular.Regex = children[0]
        for least, most in children[1:]:
            made = regular.RegexRepeat(made, least, most, at=place(meta))
        return made

    def quantifier(self, meta: Meta, children: Children) -> tuple[int, int | None]:
        sign = children[0]
        if sign == "-":
            raise LanguageError("'-' has no meaning in a regular expression; write '*', '+', '?' or {n,m}", place(meta))
        if sign.type != "NUMBER":
            return SIGNS[str(sign)]
        least, *most = [whole(token) for token in children if token.type == "NUMBER"]
        return between(least, most[0] if most else least if len(children) == 1 else None, place(meta))

    def step(self, meta: Meta, children: Children) -> regular.RegexStep:
        return regular.RegexStep(str(children[0]), at=place_of(children[0]))

    def over(self, meta: Meta, children: Children) -> tree.ParsedOver:
        name = children[0]
        return tree.ParsedOver(str(name), clause(children, "by") or (), clause(children, "order"), at=place_of(name))

    def order(self, meta: Meta, children: Children) -> Clause:
        return Clause("order", str(children[0]))

    def registers(self, meta: Meta, children: Children) -> Clause:
        return Clause("registers", tuple(children))

    def define(self, meta: Meta, children: Children) -> tree.ParsedDefine:
        name, sets = children[0], clause(children, "sets") or ()
        return tree.ParsedDefine(str(name), first(children, tree.ParsedScalar), sets, at=place_of(name))

    def sets(self, meta: Meta, children: Children) -> Clause:
        return Clause("sets", tuple(children))

    def assignment(self, meta: Meta, children: Children) -> tree.ParsedAssignment:
        name, sign, value = children
        if sign not in ("=", "=="):
            raise LanguageError(f"a register is set with '=', not {str(sign)!r}", place_of(sign))
        return tree.ParsedAssignment(str(name), value, at=place(meta))

    # --- tables ----------------------------------------------------------------------------------------------------

    def table_query(self, meta: Meta, children: Children) -> tree.ParsedTableQuery:
        return tree.ParsedTableQuery(children[0], the_slice(children), at=place(meta))

    def loop_query(self, meta: Meta, children: Children) -> tree.ParsedLoopQuery:
        return tree.ParsedLoopQuery(children[0], the_slice(children), at=place(meta))

    def compound(self, meta: Meta, children: Children) -> tree.ParsedCompound:
        left, operator, right = children
        return tree.ParsedCompound(left, operator.upper(), right, at=place(meta))

    def select(self, meta: Meta, children: Children) -> tree.ParsedSelect:
        return tree.ParsedSelect(
            clause(children, "items") or (),
            one(children, tree.ParsedTable),
            every(children, tree.ParsedJoin),
            clause(children, "where"),
            clause(children, "group_by") or (),
            clause(children, "having"),
            keyword(children, "DISTINCT") is not None,
            at=place(meta),
        )

    def table(self, meta: Meta, children: Children) -> tree.ParsedTable:
        name = children[0]
        return tree.ParsedTable(
            str(name), clause(children, "alias"), first(children, tree.ParsedWindow), at=place_of(name)
        )

    def sliding(self, meta: Meta, children: Children) -> tree.ParsedWindow:
        return tree.ParsedWindow("SLIDING", children[0], at=place(meta))

    def tumbling(self, meta: Meta, children: Children) -> tree.ParsedWindow:
        return tree.ParsedWindow("TUMBLING", children[0], zone=first(children, tree.ParsedZone), at=place(meta))

    def hopping(self, meta: Meta, children: Children) -> tree.ParsedWindow:
        size, every = children[:2]
        return tree.ParsedWindow("HOPPING", size, every, zone=first(children, tree.ParsedZone), at=place(meta))

    def months(self, meta: Meta, children: Children) -> tree.ParsedMonths:
        return tree.ParsedMonths(
            str(children[0]), "year" if children[1].lower().startswith("y") else "month", at=place(meta)
        )

    def zone(self, meta: Meta, children: Children) -> tree.ParsedZone:
        return tree.ParsedZone(unquoted(children[0]), children[1] if len(children) > 1 else None, at=place(meta))

    def session(self, meta: Meta, children: Children) -> tree.ParsedWindow:
        return tree.ParsedWindow("SESSION", children[0], None, clause(children, "by") or (), at=place(meta))

    def by(self, meta: Meta, children: Children) -> Clause:
        return Clause("by", tuple(map(str, children)))

    def join(self, meta: Meta, children: Children) -> tree.ParsedJoin:
        return tree.ParsedJoin(keyword(children, "HOW") or "INNER", *children[-2:], at=place(meta))

    def group_by(self, meta: Meta, children: Children) -> Clause:
        return Clause("group_by", tuple(children))

    def having(self, meta: Meta, children: Children) -> Clause:
        return Clause("having", children[0])

    def items(self, meta: Meta, children: Children) -> Clause:
        return Clause("items", tuple(children))

    def item(self, meta: Meta, children: Children) -> tree.ParsedItem:
        return tree.ParsedItem(children[0], clause(children, "alias"), at=place(meta))

    def star(self, meta: Meta, children: Children) -> tree.ParsedStar:
        return tree.ParsedStar(str(children[0]) if len(children) > 1 else None, at=place(meta))

    # --- scalar expressions ----------------------------------------------------------------------------------------

    def disjunction(self, meta: Meta, children: Children) -> tree.ParsedOr:
        return tree.ParsedOr(flat(children, tree.ParsedOr), at=place(meta))

    def conjunction(self, meta: Meta, children: Children) -> tree.ParsedAnd:
        return tree.ParsedAnd(flat(children, tree.ParsedAnd), at=place(meta))

    def negation(self, meta: Meta, children: Children) -> tree.ParsedNot:
        return tree.ParsedNot(children[1], at=place(meta))

    def compare(self, meta: Meta, children: Children) -> tree.ParsedBinary:
        left, sign, right = children
        return tree.ParsedBinary({"==": "=", "!=": "<>"}.get(sign, str(sign)), left, right, at=place(meta))

    def sum(self, meta: Meta, children: Children) -> tree.ParsedBinary:
        left, sign, right = children
        return tree.ParsedBinary(str(sign), left, right, at=place(meta))

    product = sum

    def signed(self, meta: Meta, children: Children) -> tree.ParsedScalar:
        sign, operand = children
        return tree.ParsedMinus(operand, at=place(meta)) if sign == "-" else operand

    def is_null(self, meta: Meta, children: Children) -> tree.ParsedIsNull:
        return tree.ParsedIsNull(children[0], len(children) > 1, at=place(meta))

    def between(self, meta: Meta, children: Children) -> tree.ParsedBetween:
        operand, low, high = every(children, tree.ParsedScalar)
        return tree.ParsedBetween(operand, low, high, keyword(children, "NOT") is not None, at=place(meta))

    def is_in(self, meta: Meta, children: Children) -> tree.ParsedIn:
        operand, *items = every(children, tree.ParsedScalar)
        return tree.ParsedIn(operand, tuple(items), keyword(children, "NOT") is not None, at=place(meta))

    def like(self, meta: Meta, children: Children) -> tree.ParsedLike:
        return tree.ParsedLike(children[0], unquoted(children[-1]), len(children) > 2, at=place(meta))

    def column(self, meta: Meta, children: Children) -> tree.ParsedColumn:
        variable, name = children if len(children) > 1 else (None, children[0])
        return tree.ParsedColumn(variable and str(variable), str(name), at=place(meta))

    def call(self, meta: Meta, children: Children) -> tree.ParsedCall:
        name, *arguments = children
        given = (tree.ParsedStar(at=place_of(a)) if isinstance(a, Token) else a for a in arguments)
        return tree.ParsedCall(name.lower(), tuple(given), at=place(meta))

    def case(self, meta: Meta, children: Children) -> tree.ParsedCase:
        subject, otherwise = clause(children, "subject"), clause(children, "otherwise")
        return tree.ParsedCase(subject, every(children, tree.ParsedWhen), otherwise, at=place(meta))

    def subject(self, meta: Meta, children: Children) -> Clause:
        return Clause("subject", children[0])

    def when(self, meta: Meta, children: Children) -> tree.ParsedWhen:
        return tree.ParsedWhen(*children, at=place(meta))

    def otherwise(self, meta: Meta, children: Children) -> Clause:
        return Clause("otherwise", children[0])

    def cast(self, meta: Meta, children: Children) -> tree.ParsedCast:
        return tree.ParsedCast(children[0], children[1].lower(), at=place(meta))

    def correlation_key(self, meta: Meta, children: Children) -> tree.ParsedCorrelationKey:
        return tree.ParsedCorrelationKey(str(children[0]), children[1].upper(), at=place(meta))

    def attribute_equal(self, meta: Meta, children: Children) -> tree.ParsedAttributeEqual:
        return tree.ParsedAttributeEqual(str(children[0]), children[1], at=place(meta))

    def signed_number(self, meta: Meta, children: Children) -> tree.ParsedScalar:
        value = number(children[-1])
        return tree.ParsedMinus(value, at=place(meta)) if children[0] == "-" else value

    def length(self, meta: Meta, children: Children) -> tree.ParsedScalar:
        if len(children) == 1:
            return number(children[0])
        parts = tuple((str(n), NAMES[unit.lower()]) for n, unit in zip(children[::2], children[1::2], strict=True))
        return checked(tree.ParsedLength(parts, at=place(meta)))

    def text(self, meta: Meta, children: Children) -> tree.ParsedText:
        return tree.ParsedText(unquoted(children[0]), at=place(meta))

    def truth(self, meta: Meta, children: Children) -> tree.ParsedTruth:
        return tree.ParsedTruth(children[0].lower() == "true", at=place(meta))

    def null(self, meta: Meta, children: Children) -> tree.ParsedNull:
        return tree.ParsedNull(at=place(meta))

    def timestamp(self, meta: Meta, children: Children) -> tree.ParsedTimestamp:
        return timestamp(children[0])


# `from` is a keyword of Python, so the method of that rule is set here
setattr(Build, "from", Build.from_)


# --- parts of a rule -----------------------------------------------------------------------------------------------


def clause(children: Children, name: str) -> Any:
    return next((c.value for c in children if isinstance(c, Clause) and c.clause == name), None)


def keyword(children: Children, terminal: str) -> Any:
    return next((c.upper() for c in children if isinstance(c, Token) and c.type == terminal), None)


def every(children: Children, kind: type[T]) -> tuple[T, ...]:
    return tuple(c for c in children if isinstance(c, kind))


def first(children: Children, kind: type[T]) -> T | None:
    return next((c for c in children if isinstance(c, kind)), None)


def one(children: Children, kind: type[T]) -> T:
    return next(c for c in children if isinstance(c, kind))


def flat(operands: Children, kind: type[tree.ParsedAnd] | type[tree.ParsedOr]) -> tuple[tree.ParsedScalar, ...]:
    """`{a AND b} AND c` is one conjunction of three."""
    return tuple(part for o in operands for part in (o.operands if isinstance(o, kind) else (o,)))


def as_parameter(children: Children) -> dict[str, Any]:
    return {
        "var": clause(children, "alias"),
        "selection": keyword(children, "SELECTION"),
        "consumption": keyword(children, "CONSUMPTION"),
    }


def whole(token: Token) -> int:
    if not token.isdecimal():
        raise LanguageError("the number of repetitions must be a whole number", place_of(token))
    return int(token)


def the_slice(children: Children) -> tree.ParsedSlice | None:
    slices = every(children, tree.ParsedSlice)
    if len(slices) > 1:
        raise LanguageError("the query has two slices; write one slice, preferably at its end", slices[1].at)
    return slices[0] if slices else None


def interval(meta: Meta, children: Children) -> tree.ParsedInterval:
    return tree.ParsedInterval(clause(children, "from"), clause(children, "to"), at=place(meta))


def time(children: Children) -> tree.ParsedScalar:
    """A time in a slice; a text there is a timestamp."""
    token = children[-1]
    if token.type == "INFINITY":
        return tree.ParsedInfinity(at=place_of(token))
    if token.type != "NUMBER":
        return timestamp(token)
    value = number(token)
    return tree.ParsedMinus(value, at=place_of(token)) if children[0] == "-" else value
