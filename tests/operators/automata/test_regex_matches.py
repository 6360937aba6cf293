"""What regular expressions find, against their definition by the tree; and that a stretch is emitted once."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from operators.automata.random_automata import DEFINED, REGISTERS, SCHEMA, STEPS, payloads, shapes
from oracle_check import check_against_oracle, runs

import cedr
from cedr import api, automata
from cedr.columnar.chunk import chunk_of
from cedr.physical import operator_of
from cedr.plan.properties import properties
from cedr.reference import automata as ra
from cedr.temporal import INF, Adjust, Cti, Insert, Row
from cedr.testing import rows

names = st.sampled_from(sorted(STEPS))
bounds = st.sampled_from([(0, None), (1, None), (0, 1), (2, 2), (1, 3), (2, None)])
trees = st.recursive(
    names,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["then", "or"]), inner, inner),
        st.builds(lambda part, b: ("repeat", part, *b), inner, bounds),
    ),
    max_leaves=4,
)
beginning = st.builds(lambda name, tree: ("then", name, tree), names, trees)
"""At least one event, so that no stretch is empty."""


def text(tree) -> str:
    match tree:
        case str():
            return tree
        case ("then", *parts):
            return f"({' '.join(map(text, parts))})"
        case ("or", *parts):
            return f"({' | '.join(map(text, parts))})"
        case ("repeat", part, least, most):
            return f"({text(part)}){{{least},{'' if most is None else most}}}"


def used(tree) -> set[str]:
    return (
        {tree}
        if isinstance(tree, str)
        else {n for part in tree[1:] if part in STEPS or isinstance(part, tuple) for n in used(part)}
    )


def operator(tree, **options):
    steps = {name: STEPS[name] for name in used(tree)}
    events = api.source("events", SCHEMA)
    return operator_of(automata.regex(text(tree), events, steps=steps, registers=REGISTERS, **options).plan, [])


@given(run=runs(payloads, max_size=6), tree=beginning, shape=shapes)
def test_a_regular_expression_finds_what_its_tree_defines(run, tree, shape):
    arrivals, restore_at = run
    check_against_oracle(
        lambda: operator(tree, **shape),
        lambda h: ra.regex(tree, h, steps=DEFINED, registers=REGISTERS, **shape),
        arrivals,
        [SCHEMA],
        restore_at,
    )


def test_a_stretch_is_emitted_once_however_it_is_taken():
    """40 events that `(A A*)*` takes in 2^39 ways."""
    events = api.source("e", {"k": str}, vs="t")
    found = automata.regex("(A A*)* A", events, A=pl.col("k") == "a", window=100)
    table = found.run(pl.DataFrame({"t": range(40), "k": ["a"] * 40})).table()
    assert table.height == 40 * 41 // 2
    assert table.unique().height == table.height


# --- two events at one place ---------------------------------------------------------------------------------------
#
#   events    |------------------>      two that differ in nothing: one stretch
#             |------------------>
#   CTI            |                    5
#   then      |------|                  one of them ends at 7: still one stretch, the longest


A_ROW = Row(k="a")


def letters():
    return operator_of(automata.regex("A", api.source("e", {"k": str}), A=pl.col("k") == "a").plan, [])


def emitted(op, *elements):
    return op.process(0, chunk_of(elements, {"k": pl.String})).elements()


def test_of_two_equal_events_one_may_end_without_a_stretch_that_comes_too_late():
    op, stretch = letters(), Row(begin=0, end=0)
    assert emitted(op, Insert(0, INF, A_ROW), Insert(0, INF, A_ROW), Cti(5)) == [Insert(0, INF, stretch), Cti(5)]
    assert emitted(op, Adjust(0, INF, 7, A_ROW)) == []
    assert emitted(op, Adjust(0, INF, 9, A_ROW)) == [Adjust(0, INF, 9, stretch)]


twins = rows(m=st.none(), v=st.just(1), n=st.integers(0, 2))
"""Events of which many differ in their ends alone."""


@given(run=runs(twins, max_size=6), tree=beginning, shape=shapes)
def test_events_that_differ_in_their_ends_alone(run, tree, shape):
    arrivals, restore_at = run
    check_against_oracle(
        lambda: operator(tree, **{**shape, "by": ()}),
        lambda h: ra.regex(tree, h, steps=DEFINED, registers=REGISTERS, **{**shape, "by": ()}),
        arrivals,
        [SCHEMA],
        restore_at,
    )


def test_what_grows_is_no_stream_of_inserts_alone():
    """The longer of two equal events comes last, in order; the planner must not count on inserts."""
    events = api.source("e", {"k": str}, progress=cedr.Progress(ordered=True), insert_only=True)
    op = letters()
    assert emitted(op, Insert(0, 5, A_ROW)) == [Insert(0, 5, Row(begin=0, end=0))]
    assert emitted(op, Insert(0, 9, A_ROW)) == [Adjust(0, 5, 9, Row(begin=0, end=0))]
    for window, grows in ((None, True), (4, False)):
        known = properties(automata.regex("A", events, A=pl.col("k") == "a", window=window).plan)
        assert (known.ordered, known.insert_only) == (not grows, not grows)
