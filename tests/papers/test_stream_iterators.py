"""Punctuation semantics in continuous streams: the framework of section 3, Theorem 1 and appendix A."""

import pytest
import sliced_lists as sl
from hypothesis import example, given
from hypothesis import strategies as st

from cedr.reference import punctuated as pt
from cedr.reference.punctuated import tables
from cedr.reference.punctuated.binary import minus
from cedr.reference.punctuated.iterator import IteratorSide, pass_t, prop_t, purge_t
from cedr.temporal.punctuation import (
    Punctuation,
    Range,
    puncts,
    punctuation,
    set_combine,
    set_match,
    set_nomatch_ts,
    tups,
)
from cedr.temporal.row import Row
from cedr.temporal.slices import joined, prefix

EOS = Punctuation()
ROW = ("zone", "hour")


def row(zone, hour):
    return Row(zone=zone, hour=hour)


def numbers(*values):
    return [v if isinstance(v, Punctuation) else Row(n=v) for v in values]


def only(*values):
    return punctuation(n=Range(values[0], values[-1]))


# --- section 2: streams that are sorted piece by piece -------------------------------------------------------------


def test_sort_at_the_end_of_a_stream():
    slices = [numbers(8, 2, 6, 11, 3), [EOS], [EOS]]
    assert pt.unary(pt.sort("n", 1), slices) == [[], [*numbers(2, 3, 6, 8, 11), EOS], [EOS]]


def test_sort_of_ranges_that_end():
    # 8 2 6 11 3 | EOS(1-10) | 12 24 15 | EOS(11-20) | 28 21: the 11 came before EOS(1-10) and waits for EOS(11-20)
    slices = [numbers(8, 2, 6, 11, 3), [only(1, 10)], numbers(12, 24, 15), [only(11, 20)], numbers(28, 21)]
    assert pt.unary(pt.sort("n", 1), slices) == [
        [],
        [*numbers(2, 3, 6, 8), only(1, 10)],
        [],
        [*numbers(11, 12, 15), only(11, 20)],
        [],
    ]


def test_sort_waits_for_the_ranges_below():
    slices = [numbers(8, 15), [only(11, 20)], [only(1, 10)]]
    assert pt.unary(pt.sort("n", 1), slices) == [[], [], [*numbers(8, 15), only(11, 20), only(1, 10)]]


# --- section 3.1 and 3.2: iterators and how they run ---------------------------------------------------------------


def test_duplicates_go_without_any_punctuation():
    slices = [[row(1, 3), row(1, 3)], [row(2, 3), row(1, 3)], []]
    assert pt.unary(pt.distinct(), slices) == [[row(1, 3)], [row(2, 3)], []]


def test_rows_are_worked_in_before_punctuations_are_asked():
    """step, pass, prop, purge: the punctuation is first in the slice, the rows are emitted first."""
    calls = []

    def side(name, result):
        def called(_given, state):
            calls.append(name)
            return result(state)

        return called

    step = side("step", lambda st: ([row(1, 1)], st))
    ask = IteratorSide(
        step, side("pass", lambda _: [row(2, 2)]), side("prop", lambda _: [EOS]), side("purge", lambda st: st)
    )
    assert pt.unary(pt.UnaryIterator(None, ask), [[EOS, row(1, 1)]]) == [[row(1, 1), row(2, 2), EOS]]
    assert calls == ["step", "pass", "prop", "purge"]


def test_the_trivial_functions_do_nothing():
    assert pass_t([EOS], "state") == prop_t([EOS], "state") == []
    assert purge_t([EOS], "state") == "state"


def test_sdiff_step_by_step():
    hour = [punctuation(hour=h) for h in range(6)]
    lefts = [[row(1, 3), row(2, 3), row(1, 4)], [hour[3]], [row(1, 4)], [hour[4]], [EOS]]
    rights = [[row(2, 3)], [], [hour[3]], [hour[4], row(5, 5)], []]
    assert pt.difference(lefts, rights) == [
        [],  # left rows wait
        [],  # the right input has not closed anything
        [],  # the left punctuation waits for rows of hour 3 that are held
        [],
        [],
        [row(1, 3)],  # hour 3 is closed, and (2, 3) came on the right
        [hour[3]],  # emitted with the next element of the left input, as no row of hour 3 is held any more
        [row(1, 4)],  # once, though it came twice
        [EOS, hour[4]],
        [],
    ]


# --- section 3.3: Theorem 1 ----------------------------------------------------------------------------------------


def cpass(lts, lps, rts, rps):
    return [t for t in tables.distinct(lts) if t not in rts and set_match(t, rps)]


def cprop(lps, rps):
    return set_combine(lps, rps)


def cpurge_left(lts, lps, rts, rps):
    return [t for t in lts if t in rts or set_match(t, rps)]


def cpurge_right(lts, lps, rts, rps):
    """Printed with rps; the text, and the proof, need the punctuations of the left input."""
    return [t for t in rts if set_match(t, lps)]


def seen(lefts, rights, i):
    left, right = prefix(lefts, i), prefix(rights, i)
    return tups(left), puncts(left), tups(right), puncts(right)


@given(sl.sliced_pairs(ROW, ROW))
def test_theorem_1_sdiff_is_faithful_to_difference(pair):
    sl.check_faithful(pt.difference(*pair), pair, [ROW, ROW], tables.difference)


@given(sl.sliced_pairs(ROW, ROW))
def test_theorem_1_sdiff_is_proper(pair):
    sl.check_proper(pt.difference(*pair))


@given(sl.sliced_pairs(ROW, ROW))
def test_theorem_1_sdiff_conforms_to_the_pass_rule(pair):
    outputs = pt.difference(*pair)
    for i in range(len(pair[0]) + 1):
        assert set(tups(prefix(outputs, 2 * i))) == set(cpass(*seen(*pair, i)))


@given(sl.sliced_pairs(ROW, ROW))
def test_theorem_1_the_prop_rule_is_proper(pair):
    outputs = pt.difference(*pair)
    for i in range(len(pair[0]) + 1):
        _, lps, _, rps = seen(*pair, i)
        assert not any(set_match(t, cprop(lps, rps)) for t in tups(joined(outputs[2 * i :])))


@given(sl.sliced_pairs(ROW, ROW), st.data())
def test_theorem_1_what_the_purge_rules_name_is_not_needed(pair, data):
    j = data.draw(st.integers(0, len(pair[0])))
    i = data.draw(st.integers(0, j))
    early, (lts, lps, rts, rps) = seen(*pair, i), seen(*pair, j)
    new_lts, new_rts = lts[len(early[0]) :], rts[len(early[2]) :]
    left = [*minus(early[0], cpurge_left(*early)), *new_lts]
    right = [*minus(early[2], cpurge_right(*early)), *new_rts]
    assert set(cpass(lts, lps, rts, rps)) == {*cpass(*early), *cpass(left, lps, right, rps)}


def test_the_right_purge_rule_as_printed_forgets_too_much():
    # right: (1, 3), then no more of hour 3. Printed, (1, 3) may go; but then it comes on the left.
    early = [], [], [row(1, 3)], [punctuation(hour=3)]
    printed = [t for t in early[2] if set_match(t, early[3])]
    late = [row(1, 3)], [], minus(early[2], printed), early[3]
    assert cpass(*late) == [row(1, 3)] != tables.difference([row(1, 3)], early[2])
    assert cpurge_right(*early) == []


# --- faithfulness and propriety of all -----------------------------------------------------------------------------


def is_early(t):
    return t.hour <= 1


AGGREGATES = {"n": len, "last": lambda ts: max(t.hour for t in ts)}

UNARY = {
    "select": (pt.select(is_early), lambda ts: tables.select(ts, is_early)),
    "project": (pt.project(["hour"]), lambda ts: tables.project(ts, ["hour"])),
    "distinct": (pt.distinct(), tables.distinct),
    "group_by": (pt.group_by(["zone"], **AGGREGATES), lambda ts: tables.group_by(ts, ["zone"], **AGGREGATES)),
}


@pytest.mark.parametrize("name", UNARY)
@given(slices=sl.sliced(ROW))
def test_unary_iterators_are_faithful_and_proper(name, slices):
    iterator, table = UNARY[name]
    outputs = pt.unary(iterator, slices)
    sl.check_faithful(outputs, [slices], [ROW], table)
    sl.check_proper(outputs)


@given(sl.sliced(("n", "tag"), about=["n"]))
@example([[Row(n=2, tag=1)], [punctuation(n=Range(None, 1))]])  # another (2, ..) may come before it
def test_sort_is_faithful_and_proper(slices):
    outputs = pt.unary(pt.sort("n", sl.LEAST), slices)
    sl.check_faithful_in_order(outputs, slices, ("n", "tag"), lambda ts: tables.sort(ts, "n"))
    sl.check_proper(outputs)


BINARY = {
    "union": (pt.union, tables.union, ROW, ROW),
    "intersect": (pt.intersect, tables.intersect, ROW, ROW),
    "join": (
        lambda ls, rs: pt.join(ls, rs, ["hour"]),
        lambda ls, rs: tables.join(ls, rs, ["hour"]),
        ("zone", "hour"),
        ("phone", "hour"),
    ),
}


@pytest.mark.parametrize("name", BINARY)
@given(data=st.data())
def test_binary_iterators_are_faithful_and_proper(name, data):
    iterator, table, left, right = BINARY[name]
    pair = data.draw(sl.sliced_pairs(left, right))
    outputs = iterator(*pair)
    sl.check_faithful(outputs, pair, [left, right], table)
    sl.check_proper(outputs)


@given(sl.sliced(ROW))
def test_a_monotone_operator_has_a_faithful_iterator_without_any_punctuation(slices):
    """f(S)@i = g(S[i]) - g(S[i-1])."""

    def table(ts):
        return tables.select(ts, is_early)

    outputs = [table(tups(prefix(slices, i + 1)))[len(table(tups(prefix(slices, i)))) :] for i, _ in enumerate(slices)]
    sl.check_faithful(outputs, [slices], [ROW], table)


# --- appendix A: what is forgotten ---------------------------------------------------------------------------------


def state_after(iterator, slices):
    state = iterator.initial
    for xs in slices:
        _, state = iterator.side.take(xs, state)
    return state


def test_a_1_and_a_2_a_group_is_emitted_and_forgotten_when_it_is_described_completely():
    iterator = pt.group_by(["zone"], n=len)
    rows = [row(1, 3), row(1, 4), row(2, 3)]
    part_of_it, all_of_it = punctuation(zone=1, hour=3), punctuation(zone=1)
    assert pt.unary(iterator, [rows, [part_of_it], [all_of_it]]) == [[], [], [Row(zone=1, n=2), all_of_it]]
    assert state_after(iterator, [rows, [part_of_it], [all_of_it]]) == [row(2, 3)]


def test_a_3_duplicate_elimination_forgets_what_cannot_come_again():
    assert state_after(pt.distinct(), [[row(1, 3), row(2, 4)], [punctuation(hour=3)]]) == [row(2, 4)]


def test_a_4_as_printed_would_lose_rows():
    # left (1, 3); then the left promises: no more of hour 4. Printed, the right row (1, 3) does not match and goes.
    lps, rts = [punctuation(hour=4)], [row(1, 3)]
    assert set_nomatch_ts(rts, lps) == [row(1, 3)]  # "purged", though a left (1, 3) may still come
    assert tups(joined(pt.intersect([[], [lps[0]], [row(1, 3)]], [rts, [], []]))) == [row(1, 3)]


# --- the laws find what is wrong -----------------------------------------------------------------------------------


def test_a_sort_of_each_slice_is_not_faithful():
    def sorting(ts, st):
        return tables.sort(ts, "n"), st

    slices = [numbers(3), numbers(1)]
    outputs = pt.unary(pt.UnaryIterator(None, IteratorSide(sorting)), slices)
    with pytest.raises(AssertionError, match="is possible"):
        sl.check_faithful_in_order(outputs, slices, ["n"], lambda ts: tables.sort(ts, "n"))


def test_a_group_by_that_never_emits_is_not_complete():
    silent = pt.UnaryIterator(None, IteratorSide(lambda _ts, st: ([], st)))
    slices = [[row(1, 3)], [punctuation(zone=1)]]
    with pytest.raises(AssertionError, match="what is certain"):
        sl.check_faithful(pt.unary(silent, slices), [slices], [ROW], lambda ts: tables.group_by(ts, ["zone"], n=len))


def test_a_difference_that_does_not_wait_is_not_safe():
    pair = [[row(1, 3)], []], [[], [row(1, 3)]]
    with pytest.raises(AssertionError, match="which may turn out wrong"):
        sl.check_faithful([[row(1, 3)], [], [], []], pair, [ROW, ROW], tables.difference)


def test_a_project_that_passes_everything_on_is_not_proper():
    slices = [[row(1, 3), punctuation(zone=1, hour=3)], [row(2, 3)]]
    outputs = [[Row(hour=3), punctuation(hour=3)], [Row(hour=3)]]
    assert pt.unary(pt.project(["hour"]), slices) == [[Row(hour=3)], [Row(hour=3)]]
    with pytest.raises(AssertionError):
        sl.check_proper(outputs)
