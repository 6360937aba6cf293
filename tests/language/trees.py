"""Random syntax trees: everything the grammar can say, and nothing it cannot."""

from hypothesis import strategies as st

from cedr.language import tree
from cedr.language.automata import tree as regular
from cedr.language.expected import OPERATORS

NAMES = st.one_of(
    st.sampled_from(["x", "y", "INSTALL", "Machine_Id", "load", "first", "m", "select", "EVENT", "inf", "Bär", "a b"]),
    st.text("abXY_ \"'.-\n1é", min_size=1, max_size=4),
)
TEXTS = st.text("ab'%_\"-\n*/ é", max_size=5)
WHOLE = st.one_of(st.integers(0, 99), st.integers(0, 2**63 - 1)).map(lambda n: tree.Number(str(n)))
BROKEN = st.sampled_from(["0.5", "12.25", "1e5", "3.0e-2"]).map(tree.Number)
LENGTHS = st.lists(
    st.tuples(st.sampled_from(["1", "2", "12", "0.5"]), st.sampled_from(["w", "d", "h", "m", "s", "ms", "us"])),
    min_size=1,
    max_size=3,
).map(lambda parts: tree.Length(tuple(parts)))
AMOUNTS = WHOLE | LENGTHS
TIMESTAMPS = st.datetimes().map(lambda t: tree.Timestamp(t.isoformat(" "), 0))
CONSTANTS = st.one_of(TEXTS.map(tree.Text), st.booleans().map(tree.Truth), st.just(tree.Null()), TIMESTAMPS)
COLUMNS = st.builds(tree.Column, st.none() | NAMES, NAMES)


SIGNS = ["+", "-", "*", "/", "%", "||", "=", "<>", "<", "<=", ">", ">="]


def some(strategy, least=1, most=3):
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


def unlike(kind, scalars):
    """Operands of a chain: one of the same kind would be part of the chain."""
    return some(scalars.filter(lambda s: not isinstance(s, kind)), least=2)


def compound_scalars(inner):
    truth = st.booleans()
    return st.one_of(
        st.builds(tree.Minus, inner),
        st.builds(tree.Not, inner),
        st.builds(
            tree.Binary, st.sampled_from(["+", "-", "*", "/", "%", "||", "=", "<>", "<", "<=", ">", ">="]), inner, inner
        ),
        unlike(tree.And, inner).map(tree.And),
        unlike(tree.Or, inner).map(tree.Or),
        st.builds(tree.IsNull, inner, truth),
        st.builds(tree.Between, inner, inner, inner, truth),
        st.builds(tree.In, inner, some(inner), truth),
        st.builds(tree.Like, inner, TEXTS, truth),
        st.builds(tree.Case, st.none() | inner, some(st.builds(tree.When, inner, inner)), st.none() | inner),
        st.builds(tree.Cast, inner, NAMES.map(str.lower)),
        st.builds(tree.Call, NAMES.map(str.lower), some(inner, least=0) | st.just((tree.Star(),))),
    )


CORRELATION_KEYS = st.builds(tree.CorrelationKey, NAMES, st.sampled_from(["EQUAL", "UNIQUE"]))
ATTRIBUTE_EQUALS = st.builds(tree.AttributeEqual, NAMES, CONSTANTS | WHOLE | WHOLE.map(tree.Minus))
ATOMS = st.one_of(COLUMNS, WHOLE, BROKEN, LENGTHS, CONSTANTS, CORRELATION_KEYS, ATTRIBUTE_EQUALS)
SCALARS = st.recursive(ATOMS, compound_scalars, max_leaves=8)

PARAMETER = {
    "var": st.none() | NAMES,
    "selection": st.sampled_from([None, "EACH", "FIRST", "LAST"]),
    "consumption": st.sampled_from([None, "REUSE", "CONSUME"]),
}
EVENT_TYPES = st.builds(tree.EventType, NAMES, **PARAMETER)
PATTERNS = st.recursive(
    EVENT_TYPES,
    lambda inner: st.builds(
        tree.Operator, st.sampled_from(OPERATORS), some(inner | AMOUNTS | BROKEN, most=4), **PARAMETER
    ),
    max_leaves=8,
)

TIMES = st.one_of(WHOLE, WHOLE.map(tree.Minus), TIMESTAMPS, st.just(tree.Infinity()))
INTERVALS = st.builds(tree.Interval, st.none() | TIMES, st.none() | TIMES)
SLICES = st.builds(tree.Slice, st.none() | INTERVALS, st.none() | INTERVALS).filter(lambda s: s.occurrence or s.valid)
ITEMS = st.builds(tree.Item, SCALARS | st.builds(tree.Star, st.none() | NAMES), st.none() | NAMES)

SPANS = AMOUNTS | st.builds(tree.Months, st.sampled_from(["1", "12"]), st.sampled_from(["month", "year"]))
ZONES = st.builds(tree.Zone, TEXTS, st.none() | AMOUNTS)
WINDOWS = st.one_of(
    st.builds(tree.Window, st.sampled_from(["SLIDING", "TUMBLING"]), AMOUNTS),
    st.builds(tree.Window, st.just("HOPPING"), AMOUNTS, AMOUNTS),
    st.builds(tree.Window, st.just("TUMBLING"), SPANS, st.none(), st.just(()), ZONES),
    st.builds(tree.Window, st.just("HOPPING"), SPANS, SPANS, st.just(()), st.none() | ZONES),
    st.builds(tree.Window, st.just("SESSION"), AMOUNTS, st.none(), some(NAMES, least=0)),
)
TABLES = st.builds(tree.Table, NAMES, st.none() | NAMES, st.none() | WINDOWS)
JOINS = st.builds(tree.Join, st.sampled_from(["INNER", "LEFT", "FULL", "SEMI", "ANTI"]), TABLES, SCALARS)
SELECTS = st.builds(
    tree.Select,
    some(ITEMS),
    TABLES,
    some(JOINS, least=0, most=2),
    st.none() | SCALARS,
    some(COLUMNS, least=0, most=2),
    st.none() | SCALARS,
    st.booleans(),
)
SET_OPERATORS = st.sampled_from(["UNION", "EXCEPT", "INTERSECT"])
COMPOUNDS = st.recursive(SELECTS, lambda left: st.builds(tree.Compound, left, SET_OPERATORS, SELECTS), max_leaves=3)

REGEXES = st.recursive(
    NAMES.map(regular.Take),
    lambda inner: st.one_of(
        some(inner, least=2).map(regular.Then),
        some(inner, least=2).map(regular.Or),
        st.builds(regular.Repeat, inner, st.sampled_from([0, 1, 2]), st.sampled_from([None, 2, 3])),
        st.builds(regular.Repeat, inner, st.just(0), st.just(1)),
    ),
    max_leaves=6,
)
ASSIGNMENTS = some(st.builds(tree.Assignment, NAMES, SCALARS), least=0, most=2)
DEFINES = st.builds(tree.Define, NAMES, st.none() | SCALARS, ASSIGNMENTS)
OVERS = st.builds(tree.Over, NAMES, some(NAMES, least=0, most=2), st.none() | NAMES)

BODIES = st.one_of(
    st.builds(
        tree.RegexQuery,
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
    st.builds(tree.LoopQuery, COMPOUNDS, st.none() | SLICES),
    st.builds(
        tree.PatternQuery, PATTERNS, st.none() | SCALARS, some(ITEMS, least=0), st.none() | SLICES
    ),
    st.builds(tree.TableQuery, COMPOUNDS, st.none() | SLICES),
)  # fmt: skip
SPANS = AMOUNTS | st.just(tree.Infinity())
CONSISTENCIES = st.one_of(
    st.builds(tree.Consistency, st.sampled_from(["STRONG", "MIDDLE", "WEAK"])),
    st.builds(tree.Consistency, st.none(), SPANS, st.none() | SPANS),
    st.builds(tree.Consistency, st.none(), st.none(), SPANS),
)
STATEMENTS = st.builds(
    tree.Statement,
    NAMES,
    BODIES,
    st.none() | CONSISTENCIES,
    st.sampled_from([None, "perfect", "ordered", "eager"]),
)
SCRIPTS = some(STATEMENTS, most=2).map(tree.Script)
