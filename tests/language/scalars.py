"""Random scalar expressions that have a type, and what they mean, one row at a time.

`meaning` is the definition: None is a missing value, and three-valued logic is spelled out.
"""

import re
from functools import reduce
from typing import Any

from hypothesis import strategies as st

from cedr.syntax import tree

COLUMNS = {"i": int, "f": float, "s": str, "b": bool}
ROWS = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-3, 3),
        "f": st.none() | st.sampled_from([-1.5, 0.0, 0.5, 2.0]),
        "s": st.none() | st.text("ab%_.", max_size=3),
        "b": st.none() | st.booleans(),
    }
)


def column(name: str, variable: str | None = None) -> st.SearchStrategy[tree.ParsedColumn]:
    return st.just(tree.ParsedColumn(variable, name))


truth = st.booleans()
SIGNS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])


def cases(values):
    return st.builds(
        tree.ParsedCase,
        st.none(),
        st.lists(st.builds(tree.ParsedWhen, TRUTHS, values), min_size=1, max_size=2).map(tuple),
        st.none() | values,
    )


def calls(name, *arguments):
    return st.tuples(*arguments).map(lambda values: tree.ParsedCall(name, tuple(values)))


NUMBERS = st.deferred(
    lambda: st.one_of(
        column("i"),
        column("f"),
        st.integers(0, 3).map(lambda n: tree.ParsedNumber(str(n))),
        st.just(tree.ParsedNumber("0.5")),
        st.builds(tree.ParsedMinus, NUMBERS),
        st.builds(tree.ParsedBinary, st.sampled_from("+-*"), NUMBERS, NUMBERS),
        calls("abs", NUMBERS),
        calls("coalesce", NUMBERS, NUMBERS),
        calls("greatest", NUMBERS, NUMBERS),
        calls("nullif", NUMBERS, NUMBERS),
        calls("length", TEXTS),
        cases(NUMBERS),
    )
)
TEXTS = st.deferred(
    lambda: st.one_of(
        column("s"),
        st.text("ab'%", max_size=2).map(tree.ParsedText),
        st.builds(tree.ParsedBinary, st.just("||"), TEXTS, TEXTS),
        calls("upper", TEXTS),
        calls("concat", TEXTS, TEXTS),
        calls("coalesce", TEXTS, TEXTS),
        cases(TEXTS),
    )
)
TRUTHS = st.deferred(
    lambda: st.one_of(
        column("b"),
        truth.map(tree.ParsedTruth),
        st.builds(tree.ParsedNot, TRUTHS),
        st.lists(TRUTHS, min_size=2, max_size=3).map(lambda os: tree.ParsedAnd(tuple(os))),
        st.lists(TRUTHS, min_size=2, max_size=3).map(lambda os: tree.ParsedOr(tuple(os))),
        st.builds(tree.ParsedBinary, SIGNS, NUMBERS, NUMBERS),
        st.builds(tree.ParsedBinary, SIGNS, TEXTS, TEXTS),
        st.builds(tree.ParsedIsNull, st.one_of(NUMBERS, TEXTS), truth),
        st.builds(tree.ParsedBetween, NUMBERS, NUMBERS, NUMBERS, truth),
        st.builds(tree.ParsedIn, NUMBERS, st.lists(NUMBERS, min_size=1, max_size=3).map(tuple), truth),
        st.builds(tree.ParsedIn, TEXTS, st.lists(TEXTS, min_size=1, max_size=3).map(tuple), truth),
        st.builds(tree.ParsedLike, TEXTS, st.text("ab%_.", max_size=3), truth),
        calls("starts_with", TEXTS, TEXTS),
    )
)


# --- what they mean ------------------------------------------------------------------------------------------------


def negation(value: bool | None) -> bool | None:
    return None if value is None else not value


def both(one: bool | None, two: bool | None) -> bool | None:
    if one is False or two is False:
        return False
    return None if None in (one, two) else True


def either(one: bool | None, two: bool | None) -> bool | None:
    return negation(both(negation(one), negation(two)))


COMPARE = {
    "=": lambda x, y: x == y,
    "<>": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "||": lambda x, y: x + y,
}
FUNCTIONS = {
    "abs": abs,
    "length": len,
    "upper": str.upper,
    "concat": lambda x, y: x + y,
    "starts_with": str.startswith,
}


def known(function, *values):
    """The function, where all values are there."""
    return None if None in values else function(*values)


def meaning(node: tree.Syntax, row: dict[str, Any]) -> Any:
    def of(inner):
        return meaning(inner, row)

    match node:
        case tree.ParsedColumn(_, name):
            return row[name]
        case tree.ParsedNumber() | tree.ParsedText() | tree.ParsedTruth():
            return node.value
        case tree.ParsedMinus(operand):
            return known(lambda x: -x, of(operand))
        case tree.ParsedNot(operand):
            return negation(of(operand))
        case tree.ParsedAnd(operands):
            return reduce(both, map(of, operands))
        case tree.ParsedOr(operands):
            return reduce(either, map(of, operands))
        case tree.ParsedBinary(sign, left, right):
            return known(COMPARE[sign], of(left), of(right))
        case tree.ParsedIsNull(operand, negated):
            return (of(operand) is None) != negated
        case tree.ParsedBetween(operand, low, high, negated):
            inside = both(known(COMPARE[">="], of(operand), of(low)), known(COMPARE["<="], of(operand), of(high)))
            return negation(inside) if negated else inside
        case tree.ParsedIn(operand, items, negated):
            found = reduce(either, (known(COMPARE["="], of(operand), of(item)) for item in items))
            return negation(found) if negated else found
        case tree.ParsedLike(operand, pattern, negated):
            text = "".join({"%": ".*", "_": "."}.get(c) or re.escape(c) for c in pattern)
            fits = known(lambda s: re.fullmatch(text, s, re.DOTALL) is not None, of(operand))
            return negation(fits) if negated else fits
        case tree.ParsedCase(_, whens, otherwise):
            chosen = next((w.value for w in whens if of(w.condition)), otherwise)
            return None if chosen is None else of(chosen)
        case tree.ParsedCall("coalesce", arguments):
            return next((value for value in map(of, arguments) if value is not None), None)
        case tree.ParsedCall("greatest", arguments):
            return max((value for value in map(of, arguments) if value is not None), default=None)
        case tree.ParsedCall("nullif", (one, two)):
            return None if of(one) == of(two) else of(one)
        case tree.ParsedCall(name, arguments):
            return known(FUNCTIONS[name], *map(of, arguments))
    raise TypeError(node)
