"""What regular expressions find, against their definition by the tree; and that a stretch is told once."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from operators.automata.random_automata import DEFINED, REGISTERS, SCHEMA, STEPS, payloads, shapes
from oracle_check import check_against_oracle, runs

from cedr import api, automata
from cedr.plan.physical import operator_of
from cedr.reference import automata as ra

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
def test_a_regular_expression_finds_what_its_tree_says(run, tree, shape):
    arrivals, restore_at = run
    check_against_oracle(
        lambda: operator(tree, **shape),
        lambda h: ra.regex(tree, h, steps=DEFINED, registers=REGISTERS, **shape),
        arrivals,
        [SCHEMA],
        restore_at,
    )


def test_a_stretch_is_told_once_however_it_is_taken():
    """40 events that `(A A*)*` takes in 2^39 ways."""
    events = api.source("e", {"k": str}, vs="t")
    found = automata.regex("(A A*)* A", events, A=pl.col("k") == "a", window=100)
    table = found.run(pl.DataFrame({"t": range(40), "k": ["a"] * 40})).table()
    assert table.height == 40 * 41 // 2
    assert table.unique().height == table.height
