"""The text of each reason of `why_not`."""

import polars as pl
import pytest
from lineage.feed import event, events, query, text

import cedr
from cedr.temporal import QueryError

PAIR = query("""
    EVENT Pair WHEN SEQUENCE(INSTALL x, SHUTDOWN y, 12)
    WHERE CorrelationKey(m, EQUAL) AND x.load < y.load OUTPUT x.m AS m
""")
ROWS = events(
    (1, "INSTALL", "a", 1),
    (5, "SHUTDOWN", "a", 2),
    (6, "SHUTDOWN", "b", 9),
    (7, "INSTALL", "b", 5),
    (9, "SHUTDOWN", "b", 4),
    (30, "SHUTDOWN", "a", 7),
)


def reason(of, rows, **named):
    answer = of.why_not(rows, **named)
    assert answer.match is None
    (found,) = answer.reasons
    first, *lines = str(answer).splitlines()
    assert first == "no match, because"
    return type(found).__name__, text(*(line.removeprefix("  ") for line in lines))


def test_there_is_a_match():
    answer = PAIR.why_not(ROWS, x={"m": "a"}, y={"load": 2})
    assert answer.reasons == ()
    assert str(answer) == f"there is a match with these events\n{PAIR.why(ROWS, m='a')}"


def test_no_such_event():
    assert reason(PAIR, ROWS, x={"m": "b", "vs": 9}) == (
        "NoSuchEvent",
        text(
            "there is no INSTALL x with m='b', vs=9",
            "  of another type there is one at 9 (kind='SHUTDOWN', m='b', load=4)",
            "  the nearest is INSTALL at 7 (m='b', load=5)",
        ),
    )


def test_several_that_are_missing():
    answer = PAIR.why_not(ROWS, x={"m": "c"}, y={"m": "d"})
    assert [type(r).__name__ for r in answer.reasons] == ["NoSuchEvent", "NoSuchEvent"]
    assert "there is no SHUTDOWN y with m='d'" in str(answer)


def test_an_event_that_came_late():
    late = [event(1, "INSTALL"), cedr.Cti(20), event(4, "SHUTDOWN", "a", 3)]
    name, text_of_reason = reason(PAIR, late, y={"m": "a"})
    assert name == "NoSuchEvent"
    assert "one came late and was put aside: element 2, insert kind=SHUTDOWN, m=a, load=3 [4, 5)" in text_of_reason


def test_an_event_that_was_removed():
    removed = [
        event(1, "INSTALL"),
        event(4, "SHUTDOWN", "a", 3),
        cedr.Adjust(4, 5, 4, event(4, "SHUTDOWN", "a", 3).payload),
    ]
    name, text_of_reason = reason(PAIR, removed, y={"m": "a"})
    assert text_of_reason == text(
        "there is no SHUTDOWN y with m='a'", "  1 came, but a correction removed it", *text_of_reason.splitlines()[2:]
    )
    assert name == "NoSuchEvent"


def test_nothing_near():
    rows = events((1, "INSTALL", "a"), (50, "SHUTDOWN", "b"), (99, "SHUTDOWN", "a"))
    assert reason(PAIR, rows, x={"m": "a"}) == (
        "NothingNear",
        text(
            "there is no SHUTDOWN y with the same m near enough to matter",
            "  the nearest is SHUTDOWN at 99 (m='a', load=0)",
        ),
    )


def test_wrong_order():
    assert reason(PAIR, ROWS, x={"m": "b"}, y={"vs": 6}) == (
        "WrongOrder",
        text(
            "wrong order: SEQUENCE 12 needs this order, but they come the other way round",
            "  INSTALL x at 7 (m='b', load=5)",
            "  SHUTDOWN y at 6 (m='b', load=9)",
        ),
    )
    every = query("EVENT E WHEN ALL(INSTALL x, SHUTDOWN y, 9) OUTPUT x.m AS m")
    _, text_of_reason = reason(every, events((3, "INSTALL"), (3, "SHUTDOWN")), x={}, y={})
    assert text_of_reason.startswith(
        "wrong order: ATLEAST 2 9 needs different times, but they start at the same time\n"
    )


def test_too_far_apart():
    assert reason(PAIR, ROWS, x={"m": "a"}, y={"vs": 30}) == (
        "TooFar",
        text(
            "too far apart for SEQUENCE 12: they are 29 apart, 17 too much",
            "  INSTALL x at 1 (m='a', load=1)",
            "  SHUTDOWN y at 30 (m='a', load=7)",
        ),
    )


def test_a_condition_that_is_not_true():
    assert reason(PAIR, ROWS, x={"m": "b"}, y={"vs": 9}) == (
        "Falsified",
        text(
            "x.load < y.load is not true: x.load=5, y.load=4",
            "  INSTALL x at 7 (m='b', load=5)",
            "  SHUTDOWN y at 9 (m='b', load=4)",
        ),
    )
    _, text_of_reason = reason(PAIR, ROWS, x={"m": "a"}, y={"vs": 6})
    assert text_of_reason.startswith("CorrelationKey(m, EQUAL) is not true: 'a' in INSTALL x, 'b' in SHUTDOWN y\n")


def test_what_forbids_it():
    # x 1 ---- y 4 -- z 6 -- | 9      at 4 and at 9 a RESTART forbids nothing, at 5 it has too little load
    missed = query("""EVENT M WHEN UNLESS(SEQUENCE(INSTALL x, SHUTDOWN y, 12), RESTART z, 5)
                      WHERE z.load > y.load OUTPUT x.m AS m""")
    rows = events((1, "INSTALL"), (4, "SHUTDOWN", "a", 3), (5, "RESTART", "a", 1), (6, "RESTART", "b", 4))
    rows += events((4, "RESTART", "c", 9), (9, "RESTART", "c", 9))
    assert reason(missed, rows, x={}, y={}) == (
        "Negated",
        text(
            "UNLESS 5 allows no RESTART z with z.load > y.load after 4 and before 9; there is",
            "  RESTART z at 6 (m='b', load=4)",
            "which forbids",
            "  INSTALL x at 1 (m='a', load=0)",
            "  SHUTDOWN y at 4 (m='a', load=3)",
        ),
    )


CHOSEN = query("EVENT F WHEN SEQUENCE(INSTALL x FIRST CONSUME, SHUTDOWN y, 12) OUTPUT x.Vs AS up")
STARTS = events((1, "INSTALL"), (2, "INSTALL"), (4, "SHUTDOWN"), (5, "SHUTDOWN"))


def test_not_selected():
    assert reason(CHOSEN, STARTS, x={"vs": 2}, y={"vs": 4}) == (
        "NotSelected",
        text(
            "not selected: in SEQUENCE 12 INSTALL x is FIRST, and of",
            "  INSTALL x at 1 (m='a', load=0)",
            "  INSTALL x at 2 (m='a', load=0)",
            "this one is preferred",
            "  INSTALL x at 1 (m='a', load=0)",
        ),
    )


def test_consumed():
    assert reason(CHOSEN, STARTS, x={"vs": 1}, y={"vs": 5}) == (
        "Consumed",
        text(
            "consumed: this event",
            "  INSTALL x at 1 (m='a', load=0)",
            "was used up by the earlier match of",
            "  INSTALL x at 1 (m='a', load=0)",
            "  SHUTDOWN y at 4 (m='a', load=0)",
        ),
    )


def test_too_many():
    few = query("EVENT F WHEN ATMOST(1, INSTALL x, SHUTDOWN y, 4) OUTPUT Vs AS t")
    rows = events((1, "INSTALL"), (2, "SHUTDOWN"), (4, "INSTALL"), (30, "INSTALL"))
    assert reason(few, rows, y={"vs": 2}) == (
        "TooMany",
        text(
            "ATMOST 1 4: from 2 to 6 there are never fewer than 2",
            "  INSTALL x at 1 (m='a', load=0)",
            "  SHUTDOWN y at 2 (m='a', load=0)",
        ),
    )
    assert few.why_not(rows, x={"vs": 30}).match is not None


def test_more_named_than_can_take_part():
    either = query("EVENT E WHEN ANY(INSTALL x, SHUTDOWN y) OUTPUT Vs AS t")
    assert reason(either, ROWS, x={"m": "a"}, y={"vs": 5}) == (
        "TooFewParameters",
        "ATLEAST 1 1 takes 1 of its parameters at a time, but x and y are named",
    )


def test_left_out_by_what_follows():
    assert reason(PAIR.slice((40, None)), ROWS, x={"m": "a"})[0] == "LeftOut"
    assert reason(PAIR.where(pl.col("m") == "b"), ROWS, x={"m": "a"})[0] == "LeftOut"


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({}, "name an event you have in mind"),
        ({"X": {}}, "there is no variable X"),
        ({"x": 3}, "why_not(x=3): describe the event by its attributes"),
        ({"x": {"lod": 3}}, "no column 'lod'; did you mean 'load'?"),
        ({"x": {"load": "high"}}, "why_not(x={'load': 'high'}): "),
    ],
)
def test_mistakes(named, message):
    with pytest.raises(QueryError) as found:
        PAIR.why_not(ROWS, **named)
    assert message in str(found.value)


def test_mistakes_about_variables():
    missed = query("EVENT M WHEN UNLESS(SEQUENCE(INSTALL x, SHUTDOWN y, 12) AS s, RESTART z, 5) OUTPUT x.m AS m")
    with pytest.raises(QueryError, match="z is negated, so no match has it"):
        missed.why_not(ROWS, z={})
    with pytest.raises(QueryError, match="s is an operator; name events in it: x, y"):
        missed.why_not(ROWS, s={})
    many = events(*((t, "INSTALL") for t in range(60)))
    with pytest.raises(QueryError, match="fits 60 events of type INSTALL, more than"):
        PAIR.why_not(many, x={})
