"""The demo tells the truth: its two levels end with the same answer, and the repairs it shows are real."""

from collections import Counter

from cedr.cli.demo import ARRIVALS, answer, steps
from cedr.temporal import History, validate


def test_the_stream_of_the_demo_is_valid():
    validate([element for element, _ in ARRIVALS])


def test_what_is_put_out_less_what_is_taken_back_is_the_answer():
    told: Counter = Counter()
    for _, _, new, gone, _ in steps():
        assert not gone - History(told.elements())
        told += new.bag
        told -= gone.bag
    assert History(told.elements()) == answer([element for element, _ in ARRIVALS])


def test_strong_consistency_tells_the_same_in_the_end_and_takes_nothing_back():
    settled = [e for *_, events in steps() for e in events]
    assert History(settled) == answer([element for element, _ in ARRIVALS])


def test_something_is_repaired():
    assert sum(len(gone) for _, _, _, gone, _ in steps()) == 2
