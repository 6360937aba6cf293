"""Scalar expressions to polars, with type errors reported at their place in the query.

Missing values work as in SQL, with three-valued logic. The scope resolves names: variables of a pattern, or columns of
tables.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import polars as pl

from cedr.syntax import tree
from cedr.syntax.errors import LanguageError, did_you_mean
from cedr.syntax.functions import call, check_call
from cedr.syntax.show import show
from cedr.syntax.values import KINDS, Value, alike, as_text, constant, fitted, typed

ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod}
COMPARISONS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MOST_WHENS = 500
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
TYPES: dict[str, pl.DataType] = {
    **dict.fromkeys(("int", "integer", "bigint"), pl.Int64()),
    **dict.fromkeys(("float", "double", "real"), pl.Float64()),
    **dict.fromkeys(("text", "string", "varchar"), pl.String()),
    "boolean": pl.Boolean(),
    "timestamp": pl.Datetime("us"),
}
TIMES = {
    ("time", "+", "length"),
    ("length", "+", "time"),
    ("time", "-", "length"),
    ("time", "-", "time"),
    ("length", "+", "length"),
    ("length", "-", "length"),
    ("length", "*", "number"),
    ("number", "*", "length"),
    ("length", "/", "number"),
    ("length", "/", "length"),
}
"""The valid arithmetic with times."""


class NameScope(Protocol):
    """Resolves names."""

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        """All columns that expressions may read."""

    def column(self, node: tree.ParsedColumn) -> Value:
        """The value of a name."""

    def aggregate(self, node: tree.ParsedCall) -> Value | None:
        """The value of an aggregate; None if the call is not an aggregate."""


def condition(node: tree.ParsedScalar, scope: NameScope) -> Value:
    """The expression, which must be a truth value."""
    value = compiled(node, scope)
    if value.kind not in ("truth", "missing"):
        raise LanguageError(f"{value}; a condition is a truth value, such as {show(node)} = …", node.at)
    return value


def compiled(node: tree.ParsedScalar, scope: NameScope) -> Value:
    found = constant(node)
    if found is not None:
        return found
    match node:
        case tree.ParsedColumn():
            return scope.column(node)
        case tree.ParsedCall():
            return scope.aggregate(node) or function(node, scope)
        case tree.ParsedAnd() | tree.ParsedOr():
            join = operator.and_ if isinstance(node, tree.ParsedAnd) else operator.or_
            return truth(balanced(join, [condition(o, scope).expression for o in node.operands]), node)
        case tree.ParsedNot():
            return truth(~condition(node.operand, scope).expression, node)
        case tree.ParsedMinus():
            return minus(node, scope)
        case tree.ParsedBinary() if node.sign in COMPARISONS:
            return compared(node.sign, compiled(node.left, scope), compiled(node.right, scope), node)
        case tree.ParsedBinary():
            return arithmetic(node, scope)
        case tree.ParsedIsNull():
            value = compiled(node.operand, scope).expression
            return truth(value.is_not_null() if node.negated else value.is_null(), node)
        case tree.ParsedBetween():
            return between(node, scope)
        case tree.ParsedIn():
            return is_in(node, scope)
        case tree.ParsedLike():
            return like(node, scope)
        case tree.ParsedCase():
            return case(node, scope)
        case tree.ParsedCast():
            return cast(node, scope)
    raise misplaced(node)


def balanced(join: Callable[[pl.Expr, pl.Expr], pl.Expr], operands: Sequence[pl.Expr]) -> pl.Expr:
    """All operands joined in a tree of minimal depth, as polars and cedr traverse it recursively."""
    found = list(operands)
    while len(found) > 1:
        pairs = [join(one, two) for one, two in zip(found[::2], found[1::2], strict=False)]
        found = pairs + found[len(pairs) * 2 :]
    return found[0]


def truth(expression: pl.Expr, node: tree.ParsedScalar, negated: bool = False) -> Value:
    return Value(~expression if negated else expression, pl.Boolean(), node)


def misplaced(node: tree.ParsedScalar) -> LanguageError:
    if isinstance(node, tree.ParsedStar):
        return LanguageError("* is not a value; only COUNT(*) takes it", node.at)
    return LanguageError(
        f"{show(node)} is about the whole pattern; it can only be a condition of WHERE, joined with AND",
        node.at,
    )


# --- the kinds of expressions --------------------------------------------------------------------------------------


def compared(sign: str, left: Value, right: Value, node: tree.ParsedScalar) -> Value:
    for side in (left, right):
        if isinstance(side.written, tree.ParsedNull):
            raise LanguageError(f"nothing is {sign} NULL, not even NULL; write IS NULL or IS NOT NULL", node.at)
    left, right = alike(left, right)
    if left.kind != right.kind and "missing" not in (left.kind, right.kind):
        raise LanguageError(
            f"{left}, but {right}; both sides of {sign} must have compatible types{how_to_fix(left, right)}", node.at
        )
    if left.kind not in KINDS and left.dtype != right.dtype:
        raise LanguageError(f"{left}, but {right}; both sides of {sign} must have compatible types", node.at)
    if not left.expression.meta.root_names():  # with a constant on the left, polars may return a single row
        return truth(COMPARISONS[MIRRORED.get(sign, sign)](right.expression, left.expression), node)
    return truth(COMPARISONS[sign](left.expression, right.expression), node)


def how_to_fix(left: Value, right: Value) -> str:
    for value, other in ((left, right), (right, left)):
        if isinstance(value.written, tree.ParsedText):
            if other.kind == "time":
                return f": write TIMESTAMP {show(value.written)}"
            if other.kind == "number" and re.fullmatch(r"\d+(\.\d+)?", value.written.value):
                return f": write {value.written.value} without quotes"
    return ""


def arithmetic(node: tree.ParsedBinary, scope: NameScope) -> Value:
    left, right = compiled(node.left, scope), compiled(node.right, scope)
    if node.sign in ("+", "-"):
        left, right = alike(left, right)
    elif node.sign in ("/", "%"):
        right = fitted(right, left)
    if node.sign == "||":
        for side in (left, right):
            if side.kind not in ("text", "missing"):
                raise LanguageError(f"{side}; || joins texts: write CAST({show(side.written)} AS TEXT)", node.at)
        return Value(as_text(left).expression + as_text(right).expression, pl.String(), node)
    if node.sign == "+" and left.dtype == pl.Date and right.dtype == pl.Time:
        return typed(left.expression.dt.combine(right.expression), scope.columns, node)
    numbers = {left.kind, right.kind} <= {"number", "missing"}
    if not numbers and (left.kind, node.sign, right.kind) not in TIMES:
        raise LanguageError(f"{left} and {right}; {node.sign} cannot combine them", node.at)
    return typed(ARITHMETIC[node.sign](left.expression, right.expression), scope.columns, node)


def minus(node: tree.ParsedMinus, scope: NameScope) -> Value:
    value = compiled(node.operand, scope)
    if value.kind not in ("number", "length", "missing"):
        raise LanguageError(f"{value}; only numbers and durations can be negated", node.at)
    return typed(-value.expression, scope.columns, node)


def between(node: tree.ParsedBetween, scope: NameScope) -> Value:
    value, low, high = (compiled(part, scope) for part in (node.operand, node.low, node.high))
    above, below = compared(">=", value, low, node), compared("<=", value, high, node)
    return truth(above.expression & below.expression, node, node.negated)


def is_in(node: tree.ParsedIn, scope: NameScope) -> Value:
    value = compiled(node.operand, scope)
    equal = [
        pl.lit(None, dtype=pl.Boolean)
        if isinstance(item, tree.ParsedNull)
        else compared("=", value, compiled(item, scope), node).expression
        for item in node.items
    ]
    return truth(balanced(operator.or_, equal), node, node.negated)


def like(node: tree.ParsedLike, scope: NameScope) -> Value:
    value = compiled(node.operand, scope)
    if value.kind not in ("text", "missing"):
        raise LanguageError(f"{value}; LIKE requires text", node.at)
    wild = {"%": ".*", "_": "."}
    pattern = "".join(wild.get(character) or re.escape(character) for character in node.pattern)
    return truth(as_text(value).expression.str.contains(f"(?s)^{pattern}$"), node, node.negated)


def case(node: tree.ParsedCase, scope: NameScope) -> Value:
    if len(node.whens) > MOST_WHENS:
        raise LanguageError(f"a CASE has at most {MOST_WHENS} WHENs; join with a table of the values", node.at)
    results = [compiled(w.value, scope) for w in node.whens]
    results += [compiled(node.otherwise, scope)] if node.otherwise else []
    for other in results[1:]:
        if "missing" not in (results[0].kind, other.kind) and results[0].kind != other.kind:
            raise LanguageError(
                f"{results[0]}, but {other}; all results of CASE must have compatible types", other.written.at
            )
    expression = results[-1].expression if node.otherwise else pl.lit(None)
    for when, result in reversed(list(zip(node.whens, results, strict=False))):
        holds = case_condition(node, when, scope).expression
        expression = pl.when(holds).then(result.expression).otherwise(expression)
    return typed(expression, scope.columns, node)


def case_condition(node: tree.ParsedCase, when: tree.ParsedWhen, scope: NameScope) -> Value:
    if node.subject is None:
        return condition(when.condition, scope)
    return compared("=", compiled(node.subject, scope), compiled(when.condition, scope), when.condition)


def cast(node: tree.ParsedCast, scope: NameScope) -> Value:
    """A value that cannot be cast becomes missing, as one invalid text must not stop a stream."""
    if node.type not in TYPES:
        names = [name.upper() for name in TYPES]
        hint = did_you_mean(node.type.upper(), names)
        raise LanguageError(f"there is no type {node.type.upper()}{hint} (types: {', '.join(names)})", node.at)
    value, dtype = compiled(node.operand, scope), TYPES[node.type]
    if value.kind == "text" and node.type == "timestamp":
        expression = value.expression.str.to_datetime(time_unit="us", strict=False)
    elif value.kind == "text" and node.type == "boolean":
        lower = value.expression.str.to_lowercase()
        expression = pl.when(lower.is_in(["true", "false"])).then(lower == "true")
    elif value.kind == "number" and node.type == "timestamp":
        expression = value.expression.cast(pl.Int64, strict=False).cast(dtype)
    else:
        expression = value.expression.cast(dtype, strict=False)
    return Value(typed(expression, scope.columns, node).expression, dtype, node)


def function(node: tree.ParsedCall, scope: NameScope) -> Value:
    check_call(node)
    arguments = [compiled(argument, scope) for argument in node.arguments]
    return typed(call(node, arguments), scope.columns, node)
