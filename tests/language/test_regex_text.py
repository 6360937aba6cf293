"""Regular expressions as text: what they mean, and how mistakes are shown."""

import polars as pl
import pytest

import cedr
from cedr.syntax.automata.glushkov import positions_of
from cedr.syntax.automata.parse import parse_regex
from cedr.syntax.automata.tree import RegexChoice, RegexRepeat, RegexSequence, RegexStep

A, B, C = RegexStep("A"), RegexStep("B"), RegexStep("C")
EVENTS = cedr.source("events", {"k": str, "x": int}, vs="t")
IS_A, IS_B = pl.col("k") == "a", pl.col("k") == "b"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("A", A),
        ("A B* A", RegexSequence((A, RegexRepeat(B, 0, None), A))),
        ("A|B C", RegexChoice((A, RegexSequence((B, C))))),
        ("(A|B) C+", RegexSequence((RegexChoice((A, B)), RegexRepeat(C, 1, None)))),
        ("A{2}B{2,}C{2,3}", RegexSequence((RegexRepeat(A, 2, 2), RegexRepeat(B, 2, None), RegexRepeat(C, 2, 3)))),
        ("A?*", RegexRepeat(RegexRepeat(A, 0, 1), 0, None)),
    ],
)
def test_how_expressions_are_read(text, tree):
    assert parse_regex(text) == tree


def test_the_automaton_of_the_paper():
    made = positions_of(parse_regex("A B* A"))
    assert list(made.transitions()) == [
        ("start", "A", "A 1"),
        ("A 1", "B", "B 2"),
        ("A 1", "A", "A 3"),
        ("B 2", "B", "B 2"),
        ("B 2", "A", "A 3"),
    ]
    assert made.final == ("A 3",)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A B* (", "line 1, column 7: the expression ends too early; expected a step or '('\n  A B* (\n        ^"),
        ("A B ) A", "line 1, column 5: unexpected ')'; expected the end\n  A B ) A\n      ^"),
        ("A & B", "line 1, column 3: unexpected '&'; expected a step, "),
        ("A b", "line 1, column 3: there is no step 'b'; did you mean 'B'?\n  A b\n    ^"),
        ("A* B*", "line 1, column 1: the expression also matches an empty sequence"),
        ("A B{3,2}", "line 1, column 4: {3,2} repeats nothing; the last number must be at least 1"),
        ("A{2000} B", "line 1, column 1: expanded, the expression has more than 1000 steps"),
        ("A+", "line 1, column 1: step 'B' is given, but the expression has no such step"),
    ],
)
def test_mistakes_in_an_expression(text, shown):
    with pytest.raises(cedr.CedrError) as e:
        cedr.regex(text, EVENTS, A=IS_A, B=IS_B)
    assert str(e.value).startswith(shown)


M = pl.col("m")


@pytest.mark.parametrize(
    ("step", "registers", "message"),
    [
        (cedr.step(IS_A, z=1), {}, "step 'A' sets 'z', which is not a register; give registers={'z': 0}"),
        (pl.col("kk") == "a", {}, "no column 'kk'; did you mean 'k'?"),
        (cedr.step(M / 2 > 1), {"m": 0}, "cannot be computed from registers; there are +, -, *"),
        (cedr.step(pl.col("x") > 1), {"x": 0}, "'x' is a register and a column of the events; rename one"),
        (cedr.step(IS_A), {"begin": 0}, "'begin' is a column of the result; give it another name"),
        (cedr.step(IS_A), {"m": "one"}, "register 'm' starts as 'one'; it must be a number"),
        (cedr.step(pl.col("k") == M), {"m": 0}, "is String; registers are numbers"),
        (cedr.step((M & 1) == 1), {"m": 0}, "works on the bits of numbers"),
        (pl.col("x") + 1, {}, "filter predicate must be of type `Boolean`"),
        (cedr.step(m=M > 1), {"m": 0}, "which is Boolean, not a number"),
        (pl.col("x").sum() > 1, {}, "uses several rows"),
    ],
)
def test_mistakes_in_a_step(step, registers, message):
    with pytest.raises(cedr.CedrError) as e:
        cedr.regex("A", EVENTS, A=step, registers=registers)
    assert message in str(e.value)


TABLE = cedr.source("table", {"source": str, "symbol": str, "target": str})


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ([("S", "a", "F")], {"start": "S"}, "the symbols of the transitions have no meaning yet"),
        ([("S", "a", "F")], {"start": "T", "symbol": "k"}, "no transition leads out of the start state 'T'"),
        ([("S", "a", "F")], {"start": "S", "final": "G", "symbol": "k"}, "no transition leads to the final state 'G'"),
        ([("S", "a")], {"start": "S", "symbol": "k"}, "is not a transition; write (source, symbol, target)"),
        ([], {"start": "S", "symbol": "k"}, "there are no transitions"),
        ([("S", "B", "F")], {"start": "S", "steps": {"A": IS_A}}, "symbols name steps: no column 'B'"),
        (TABLE, {"start": 1, "symbol": "k"}, "state 1 is not String"),
        (TABLE, {"start": "S", "symbol": "x"}, "symbols are String in the table, but Int64 in 'x'"),
        (TABLE, {"start": "S", "symbol": "k", "order": "k"}, "it must hold sequence numbers"),
        (TABLE, {"start": "S", "symbol": "k", "final": []}, "final is empty"),
        (EVENTS, {"start": "S", "symbol": "k"}, "transitions: no column 'source'"),
    ],
)
def test_mistakes_in_an_automaton(table, options, message):
    with pytest.raises(cedr.CedrError) as e:
        cedr.automaton(EVENTS, table, **options)
    assert message in str(e.value)
