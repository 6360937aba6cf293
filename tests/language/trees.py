"""Random syntax trees: everything the grammar can express, and nothing it cannot."""

from hypothesis import strategies as st

from cedr.syntax import tree
from cedr.syntax.automata import tree as regular
from cedr.syntax.expected import OPERATORS

NAMES = st.one_of(
    st.sampled_from(["x", "y", "INSTALL", "Machine_Id", "load", "first", "m", "select", "EVENT", "inf", "Bär", "a b"]),
    st.text("abXY_ \"'.-\n1é", min_size=1, max_size=4),
)
TEXTS = st.text("ab'%_\"-\n*/ é", max_size=5)
WHOLE = st.one_of(st.integers(0, 99), st.integers(0, 2**63 - 1)).map(lambda n: tree.ParsedNumber(str(n)))
BROKEN = st.sampled_from(["0.5", "12.25", "1e5", "3.0e-2"]).map(tree.ParsedNumber)
LENGTHS = st.lists(
    st.tuples(st.sampled_from(["1", "2", "12", "0.5"]), st.sampled_from(["w", "d", "h", "m", "s", "ms", "us"])),
    min_size=1,
    max_size=3,
).map(lambda parts: tree.ParsedLength(tuple(parts)))
AMOUNTS = WHOLE | LENGTHS
TIMESTAMPS = st.datetimes().map(lambda t: tree.ParsedTimestamp(t.isoformat(" "), 0))
CONSTANTS = st.one_of(
    TEXTS.map(tree.ParsedText), st.booleans().map(tree.ParsedTruth), st.just(tree.ParsedNull()), TIMESTAMPS
)
COLUMNS = st.builds(tree.ParsedColumn, st.none() | NAMES, NAMES)


SIGNS = ["+", "-", "*", "/", "%", "||", "=", "<>", "<", "<=", ">", ">="]


def some(strategy, least=1, most=3):
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


def unlike(kind, scalars):
    """Operands of a chain: one of the same kind would be part of the chain."""
    return some(scalars.filter(lambda s: not isinstance(s, kind)), least=2)


def compound_scalars(inner):
    truth = st.booleans()
    return st.one_of(
        st.builds(tree.ParsedMinus, inner),
        st.builds(tree.ParsedNot, inner),
        st.builds(
            tree.ParsedBinary,
            st.sampled_from(["+", "-", "*", "/", "%", "||", "=", "<>", "<", "<=", ">", ">="]),
            inner,
            inner,
        ),
        unlike(tree.ParsedAnd, inner).map(tree.ParsedAnd),
        unlike(tree.ParsedOr, inner).map(tree.ParsedOr),
        st.builds(tree.ParsedIsNull, inner, truth),
        st.builds(tree.ParsedBetween, inner, inner, inner, truth),
        st.builds(tree.ParsedIn, inner, some(inner), truth),
        st.builds(tree.ParsedLike, inner, TEXTS, truth),
        st.builds(
            tree.ParsedCase, st.none() | inner, some(st.builds(tree.ParsedWhen, inner, inner)), st.none() | inner
        ),
        st.builds(tree.ParsedCast, inner, NAMES.map(str.lower)),
        st.builds(tree.ParsedCall, NAMES.map(str.lower), some(inner, least=0) | st.just((tree.ParsedStar(),))),
    )


CORRELATION_KEYS = st.builds(tree.ParsedCorrelationKey, NAMES, st.sampled_from(["EQUAL", "UNIQUE"]))
ATTRIBUTE_EQUALS = st.builds(tree.ParsedAttributeEqual, NAMES, CONSTANTS | WHOLE | WHOLE.map(tree.ParsedMinus))
ATOMS = st.one_of(COLUMNS, WHOLE, BROKEN, LENGTHS, CONSTANTS, CORRELATION_KEYS, ATTRIBUTE_EQUALS)
SCALARS = st.recursive(ATOMS, compound_scalars, max_leaves=8)

PARAMETER = {
    "var": st.none() | NAMES,
    "selection": st.sampled_from([None, "EACH", "FIRST", "LAST"]),
    "consumption": st.sampled_from([None, "REUSE", "CONSUME"]),
}
EVENT_TYPES = st.builds(tree.ParsedEventType, NAMES, **PARAMETER)
PATTERNS = st.recursive(
    EVENT_TYPES,
    lambda inner: st.builds(
        tree.ParsedPatternOperator, st.sampled_from(OPERATORS), some(inner | AMOUNTS | BROKEN, most=4), **PARAMETER
    ),
    max_leaves=8,
)

TIMES = st.one_of(WHOLE, WHOLE.map(tree.ParsedMinus), TIMESTAMPS, st.just(tree.ParsedInfinity()))
INTERVALS = st.builds(tree.ParsedInterval, st.none() | TIMES, st.none() | TIMES)
SLICES = st.builds(tree.ParsedSlice, st.none() | INTERVALS, st.none() | INTERVALS).filter(
    lambda s: s.occurrence or s.valid
)
ITEMS = st.builds(tree.ParsedItem, SCALARS | st.builds(tree.ParsedStar, st.none() | NAMES), st.none() | NAMES)

SPANS = AMOUNTS | st.builds(tree.ParsedMonths, st.sampled_from(["1", "12"]), st.sampled_from(["month", "year"]))
ZONES = st.builds(tree.ParsedZone, TEXTS, st.none() | AMOUNTS)
WINDOWS = st.one_of(
    st.builds(tree.ParsedWindow, st.sampled_from(["SLIDING", "TUMBLING"]), AMOUNTS),
    st.builds(tree.ParsedWindow, st.just("HOPPING"), AMOUNTS, AMOUNTS),
    st.builds(tree.ParsedWindow, st.just("TUMBLING"), SPANS, st.none(), st.just(()), ZONES),
    st.builds(tree.ParsedWindow, st.just("HOPPING"), SPANS, SPANS, st.just(()), st.none() | ZONES),
    st.builds(tree.ParsedWindow, st.just("SESSION"), AMOUNTS, st.none(), some(NAMES, least=0)),
)
TABLES = st.builds(tree.ParsedTable, NAMES, st.none() | NAMES, st.none() | WINDOWS)
JOINS = st.builds(tree.ParsedJoin, st.sampled_from(["INNER", "LEFT", "FULL", "SEMI", "ANTI"]), TABLES, SCALARS)
SELECTS = st.builds(
    tree.ParsedSelect,
    some(ITEMS),
    TABLES,
    some(JOINS, least=0, most=2),
    st.none() | SCALARS,
    some(COLUMNS, least=0, most=2),
    st.none() | SCALARS,
    st.booleans(),
)
SET_OPERATORS = st.sampled_from(["UNION", "EXCEPT", "INTERSECT"])
COMPOUNDS = st.recursive(
    SELECTS, lambda left: st.builds(tree.ParsedCompound, left, SET_OPERATORS, SELECTS), max_leaves=3
)

REGEXES = st.recursive(
    NAMES.map(regular.RegexStep),
    lambda inner: st.one_of(
        some(inner, least=2).map(regular.RegexSequence),
        some(inner, least=2).map(regular.RegexChoice),
        st.builds(regular.RegexRepeat, inner, st.sampled_from([0, 1, 2]), st.sampled_from([None, 2, 3])),
        st.builds(regular.RegexRepeat, inner, st.just(0), st.just(1)),
    ),
    max_leaves=6,
)
ASSIGNMENTS = some(st.builds(tree.ParsedAssignment, NAMES, SCALARS), least=0, most=2)
DEFINES = st.builds(tree.ParsedDefine, NAMES, st.none() | SCALARS, ASSIGNMENTS)
OVERS = st.builds(tree.ParsedOver, NAMES, some(NAMES, least=0, most=2), st.none() | NAMES)

BODIES = st.one_of(
    st.builds(
        tree.ParsedRegexQuery,
        REGEXES,
        st.none() | AMOUNTS,
        st.none() | NAMES,
        st.none() | OVERS,
        ASSIGNMENTS,
        some(DEFINES, least=0, most=2),
        st.none() | SCALARS,
        some(ITEMS, least=0, most=2),
        st.none() | SLICES,
    ),
    st.builds(tree.ParsedLoopQuery, COMPOUNDS, st.none() | SLICES),
    st.builds(
        tree.ParsedPatternQuery, PATTERNS, st.none() | SCALARS, some(ITEMS, least=0), st.none() | SLICES
    ),
    st.builds(tree.ParsedTableQuery, COMPOUNDS, st.none() | SLICES),
)  # fmt: skip
SPANS = AMOUNTS | st.just(tree.ParsedInfinity())
CONSISTENCIES = st.one_of(
    st.builds(tree.ParsedConsistency, st.sampled_from(["STRONG", "MIDDLE", "WEAK"])),
    st.builds(tree.ParsedConsistency, st.none(), SPANS, st.none() | SPANS),
    st.builds(tree.ParsedConsistency, st.none(), st.none(), SPANS),
)
STATEMENTS = st.builds(
    tree.ParsedStatement,
    NAMES,
    BODIES,
    st.none() | CONSISTENCIES,
    st.sampled_from([None, "perfect", "ordered", "eager"]),
)
SCRIPTS = some(STATEMENTS, most=2).map(tree.ParsedScript)
