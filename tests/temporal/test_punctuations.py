"""Punctuations as data: what patterns match, how they meet, and which streams keep them."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr import testing
from cedr.temporal import INF, Adjust, Cti, Insert, PayloadError, Row, StreamError, TimeError, canonical, validate
from cedr.temporal.punctuation import (
    ANY,
    NOTHING,
    Constant,
    OneOf,
    Punctuation,
    Range,
    as_pattern,
    combine,
    frontier,
    match,
    matches,
    meet,
    nomatch,
    puncts,
    punctuation,
    set_combine,
    set_match,
    set_match_ts,
    set_nomatch,
    set_nomatch_ps,
    set_nomatch_ts,
    simple,
    tups,
    within,
)
from cedr.temporal.stream import data, stream_table, violations

VALUES = [None, 0, 1, 2, 3, 2.5, float("nan"), "a", "b", date(2020, 1, 1)]
values = st.sampled_from(VALUES).map(lambda v: Row(v=v).v)
ends = st.one_of(st.none(), values.filter(lambda v: v is not None))
patterns = st.one_of(
    st.sampled_from([ANY, NOTHING]),
    values.map(Constant),
    st.builds(Range, ends, ends),
    st.lists(values).map(OneOf),
)
rows = testing.rows(zone=values, hour=values)


@st.composite
def punctuations(draw):
    about = draw(st.sets(st.sampled_from(["zone", "hour"])))
    return Punctuation({name: draw(patterns) for name in about}, draw(st.one_of(st.integers(0, 5), st.just(INF))))


# --- patterns ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [  # Table 1
        (ANY, [None, 1, 2, 3, 4, "x"]),
        (Constant(2), [2]),
        (Range(2, 3), [2, 3]),
        (OneOf([1, 4]), [1, 4]),
        (NOTHING, []),
        # and the ends we leave open
        (Range(3, None), [3, 4, "x"]),  # texts come after numbers in the one order of payloads
        (Range(None, 2), [1, 2]),
        (Range(), [1, 2, 3, 4, "x"]),
        (Constant(None), [None]),
        (OneOf([None, "x"]), [None, "x"]),
    ],
    ids=str,
)
def test_table_1(pattern, matched):
    assert [v for v in [None, 1, 2, 3, 4, "x"] if matches(v, pattern)] == matched


@given(values, patterns, patterns)
def test_a_value_matches_where_two_patterns_meet_if_it_matches_both(value, p, q):
    assert matches(value, meet(p, q)) == (matches(value, p) and matches(value, q))


@given(patterns, patterns, values)
def test_within_means_every_value_of_it(p, q, value):
    if within(p, q) and matches(value, p):
        assert matches(value, q)


@given(patterns)
def test_a_pattern_lies_within_itself_and_the_wildcard(p):
    assert within(p, ANY)
    assert within(simple(p), simple(p))
    assert within(NOTHING, p)


@given(patterns, values)
def test_the_shortest_form_means_the_same(p, value):
    assert matches(value, simple(p)) == matches(value, p)
    assert simple(simple(p)) == simple(p)


@pytest.mark.parametrize(
    ("written", "pattern"),
    [
        (3, Constant(3)),
        (None, Constant(None)),
        (..., ANY),
        ([1, 6], OneOf([1, 6])),
        ({5}, Constant(5)),
        ([], NOTHING),
        (Range(4, 4), Constant(4)),
        (Range(5, 4), NOTHING),
        ((1, 2), Constant((1, 2))),
    ],
    ids=str,
)
def test_patterns_are_written_as_python_values(written, pattern):
    assert as_pattern(written) == pattern


# --- punctuations --------------------------------------------------------------------------------------------------


def test_the_two_examples_of_the_paper():
    hour_3 = punctuation(hour=3)
    some = punctuation(zone=[1, 6], hour=Range(5, 8))
    assert [match(Row(zone=z, hour=h), hour_3) for z, h in [(1, 3), (2, 3), (1, 4)]] == [True, True, False]
    assert [match(Row(zone=z, hour=h), some) for z, h in [(1, 5), (6, 8), (2, 6), (1, 9)]] == [True, True, False, False]
    assert str(hour_3) == "no more hour=3"
    assert str(some) == "no more hour=[5, 8], zone={1, 6}"


def test_a_punctuation_may_reach_to_a_time():
    early = punctuation(100, key="a")
    assert early.forbids(Row(key="a"), 99)
    assert not early.forbids(Row(key="a"), 100)
    assert not early.forbids(Row(key="b"), 0)
    assert str(early) == "no more key=a before 100"


def test_without_patterns_it_is_about_everything():
    assert punctuation(5).about("any payload")
    assert punctuation(5).attributes == punctuation(5, zone=...).attributes == ()
    assert str(punctuation(5)) == "no more everything before 5"


def test_attributes_need_a_row():
    with pytest.raises(PayloadError, match="no more zone=1 is about attributes, but the payload 'A' is not a Row"):
        punctuation(zone=1).about("A")


def test_the_time_must_be_one():
    with pytest.raises(TimeError, match="time a punctuation reaches to"):
        Punctuation({"zone": 1}, 2.5)


@given(punctuations(), punctuations(), rows)
def test_a_row_matches_a_combination_if_it_matches_both(p, q, row):
    assert match(row, combine(p, q)) == (match(row, p) and match(row, q))
    assert combine(p, q) == combine(q, p)
    assert combine(p, p) == p or p.empty


@given(punctuations(), punctuations(), rows, st.integers(0, 6))
def test_what_a_combination_forbids_both_forbid(p, q, row, sync):
    assert combine(p, q).forbids(row, sync) == (p.forbids(row, sync) and q.forbids(row, sync))


@given(punctuations(), punctuations(), rows, st.integers(0, 6))
def test_what_is_covered_forbids_nothing_more(p, q, row, sync):
    if p.covers(q) and q.forbids(row, sync):
        assert p.forbids(row, sync)
    assert p.covers(p)
    assert p.covers(combine(p, q))


def test_covering_needs_values_and_time():
    assert punctuation(9, zone=[1, 2]).covers(punctuation(7, zone=1, hour=3))
    assert not punctuation(9, zone=[1, 2]).covers(punctuation(10, zone=1))
    assert not punctuation(9, zone=[1, 2]).covers(punctuation(7, hour=3))
    assert punctuation(0, hour=3).covers(punctuation(9, zone=[]))  # which promises nothing


@given(st.lists(punctuations(), max_size=3), st.lists(punctuations(), max_size=3), st.lists(rows, max_size=3))
def test_table_2(ps, qs, ts):
    for t in ts:
        assert nomatch(t, Punctuation()) is False
        assert set_match(t, ps) == any(match(t, p) for p in ps) != set_nomatch(t, ps)
        assert set_match(t, set_combine(ps, qs)) == (set_match(t, ps) and set_match(t, qs))
    assert set_match_ts(ts, ps) == [t for t in ts if set_match(t, ps)]
    assert set_nomatch_ts(ts, ps) == [t for t in ts if not set_match(t, ps)]
    assert set_nomatch_ps(ts, ps) == [p for p in ps if not any(match(t, p) for t in ts)]
    assert tups([*ts, *ps]) == ts
    assert puncts([*ts, *ps]) == ps


@given(st.lists(punctuations(), max_size=4), rows)
def test_the_frontier_of_a_payload_is_the_latest_time_promised_about_it(ps, row):
    found = frontier(row, ps)
    assert found == max((p.before for p in ps if p.about(row)), default=None)
    for p in ps:
        assert not any(p.forbids(row, sync) for sync in ([found] if found is not None else range(6)))


# --- streams -------------------------------------------------------------------------------------------------------


def test_a_stream_keeps_what_it_promised():
    #        1  2  3  4  5
    #  a     #####
    #  b              ####          no more a before 4: b may still start at 2
    promise = punctuation(4, key="a")
    validate([Insert(1, 3, Row(key="a")), promise, Insert(2, 5, Row(key="b")), Insert(4, 5, Row(key="a"))])
    with pytest.raises(StreamError, match="it was promised: no more key=a before 4"):
        validate([promise, Insert(3, 5, Row(key="a"))])


def test_an_adjust_breaks_a_promise_by_the_first_instant_it_changes():
    stream = [Insert(1, 9, Row(key="a")), punctuation(4, key="a")]
    validate([*stream, Adjust(1, 9, 4, Row(key="a"))])
    with pytest.raises(StreamError, match="no more key=a before 4"):
        validate([*stream, Adjust(1, 9, 3, Row(key="a"))])


def test_a_punctuation_about_everything_is_a_cti():
    for promise in (Cti(5), punctuation(5)):
        with pytest.raises(StreamError, match="cti 5 promised"):
            validate([promise, Insert(4, 9, Row(key="a"))])


def test_what_breaks_a_promise_is_named_and_left_out():
    late = Insert(1, 2, Row(key="a"))
    (found,) = violations([punctuation(key="a"), late, Insert(1, 2, Row(key="b"))])
    assert found.element == late


def test_punctuations_stand_in_the_table_of_a_stream():
    table = stream_table([Insert(1, 3, Row(key="a")), punctuation(4, key="a")])
    assert table.splitlines()[-1].split() == ["Punctuation", "4", "key=a"]


KEYS = {"key": ["a", "b", "c"], "n": [0, 1]}


@given(st.data(), st.booleans())
def test_random_punctuations_are_kept(drawn, exact):
    stream = drawn.draw(testing.streams(testing.rows(**{n: st.sampled_from(v) for n, v in KEYS.items()})))
    promising = drawn.draw(testing.punctuated(stream, KEYS, exact=exact))
    validate(promising)
    assert canonical(promising) == canonical(stream)
    assert [e for e in promising if e not in puncts(promising)] == stream
    if exact:
        for place, p in enumerate(promising):
            if isinstance(p, Punctuation) and p.before != INF:
                assert p.before in [e.sync for e in data(promising[place:]) if p.about(e.payload)]
