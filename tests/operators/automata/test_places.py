"""Places of events: a late one changes the output for the next one, and for no other."""

import polars as pl

from cedr.columnar.chunk import chunk_of
from cedr.operators.automata.places import PlacesOperator
from cedr.temporal import Adjust, Cti, Insert, Row
from cedr.temporal.time import MIN

SCHEMA = {"g": pl.String(), "n": pl.Int64()}


def emitted(op: PlacesOperator, *elements):
    return op.process(0, chunk_of(elements, SCHEMA)).elements()


def at(g: str, place: int, after: int, rank: int = 0, n: int = 0) -> Row:
    return Row(g=g, n=n, _run_at=place, _run_after=after, _run_rank=rank)


def e(g: str, n: int = 0) -> Row:
    return Row(g=g, n=n)


# --- by starts -----------------------------------------------------------------------------------------------------
#
#   a      1-----4-----9         the late one at 6 goes between 4 and 9, until it is removed
#   late            6


def test_a_late_event_goes_between_two_others():
    op = PlacesOperator(SCHEMA, ("g",), None, linked=True)
    assert emitted(op, Insert(1, 30, e("a")), Insert(4, 30, e("a")), Insert(9, 30, e("a"))) == [
        Insert(1, 30, at("a", 1, MIN)),
        Insert(4, 30, at("a", 4, 1)),
        Insert(9, 30, at("a", 9, 4)),
    ]
    assert emitted(op, Insert(6, 7, e("a"))) == [
        Insert(6, 7, at("a", 6, 4)),
        Adjust(9, 30, 9, at("a", 9, 4)),
        Insert(9, 30, at("a", 9, 6)),
    ]
    assert emitted(op, Adjust(6, 7, 6, e("a"))) == [
        Adjust(6, 7, 6, at("a", 6, 4)),
        Adjust(9, 30, 9, at("a", 9, 6)),
        Insert(9, 30, at("a", 9, 4)),
    ]


def test_a_forgotten_predecessor_changes_nothing():
    """The event at 1 ends at 2 and is forgotten; the one at 4 was emitted as its successor, and stays so."""
    op = PlacesOperator(SCHEMA, ("g",), None, linked=True)
    emitted(op, Insert(1, 2, e("a")), Insert(4, 30, e("a")), Insert(0, 30, e("A")), Cti(5))
    assert op.state_size()[0] == 2
    assert emitted(op, Insert(7, 30, e("a")), Adjust(4, 30, 20, e("a"))) == [
        Adjust(4, 30, 20, at("a", 4, 1)),
        Insert(7, 30, at("a", 7, 4)),
    ]


def test_events_that_are_the_same_have_ranks():
    op = PlacesOperator(SCHEMA, (), None, linked=True)
    assert emitted(op, Insert(1, 3, e("a")), Insert(1, 3, e("a"))) == [
        Insert(1, 3, at("a", 1, MIN, 0)),
        Insert(1, 3, at("a", 1, MIN, 1)),
    ]


def test_by_number_an_event_follows_the_number_before():
    op = PlacesOperator(SCHEMA, ("g",), "n", linked=False)
    assert emitted(op, Insert(5, 9, e("a", 3)), Insert(2, 9, Row(g="a", n=None)), Cti(5)) == [
        Insert(5, 9, at("a", 3, 2, n=3)),
        Cti(5),
    ]
