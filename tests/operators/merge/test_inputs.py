"""Inputs come, go, fail, start again with gaps and with what they sent before, and join late."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from merge_check import SCHEMA, STREAMS, histories, restored, row

from cedr import testing
from cedr.columnar.chunk import chunk_of
from cedr.operators.merge.algorithms import ALGORITHMS
from cedr.reference.merge import compatible
from cedr.temporal import END, INF, Adjust, Cti, History, Insert, QueryError, StreamError, canonical, validate

A, B, C = row("A"), row("B"), row("C")


def feed(merge, port, *elements):
    return merge.process(port, chunk_of(elements, merge.schema)).elements()


def feed_all(merge, port, parts, out):
    for part in parts:
        out += feed(merge, port, *part)


@st.composite
def restarts(draw, algorithm):
    """Input 0 sends a history. Input 1 does, fails, and starts again, complete from a join time on."""
    unique, streams = STREAMS[algorithm]
    history = draw(histories(unique=unique))
    first, second = draw(streams(history)), draw(streams(history))
    join = draw(st.integers(0, 30))
    gap = History(e for e in history if e.ve < join and draw(st.booleans()))
    again = draw(streams(history - gap))
    fails_after = draw(st.integers(0, len(second) - 1))
    script = [("rows", part) for part in draw(testing.slicings(second[:fails_after]))]
    script += [("detach", None), ("attach", join)]
    script += [("rows again", part) for part in draw(testing.slicings(again))]
    turns = draw(st.permutations([0] * len(slices := draw(testing.slicings(first))) + [1] * len(script)))
    rest = iter([("rows", part) for part in slices]), iter(script)
    return history, gap, [(port, *next(rest[port])) for port in turns]


@pytest.mark.usefixtures("changing_layout")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(data=st.data())
def test_an_input_starts_again_and_then_the_other_may_fail(algorithm, data):
    history, gap, script = data.draw(restarts(algorithm))
    the_other_fails = data.draw(st.booleans())
    make = lambda: ALGORITHMS[algorithm](SCHEMA)  # noqa: E731
    merge = make()
    sent = [[], [], [Insert(*e) for e in gap]]  # what was not sent again is true nevertheless
    out = []
    for port, action, argument in script:
        if data.draw(st.integers(0, 9)) == 0:
            merge = restored(make, merge)
        if action == "detach":
            merge.detach(1)
        elif action == "attach":
            merge.attach(1, argument)
        elif merge.attached[port]:
            out += feed(merge, port, *argument)
            sent[2 if action == "rows again" else port] += argument
        if the_other_fails and merge.attached[0] and sent[2][len(gap) :] and merge.joined(1):
            merge.detach(0, "its machine is gone")
        assert compatible(sent, out, multiset=True) == []
    validate(out)
    testing.assert_same(canonical(out), history)
    assert merge.stable == INF


def test_an_input_that_joins_late_counts_from_its_join_time():
    #        0    5    10   15
    # A      ###########
    # B                  ####
    merge = ALGORITHMS["R3"](SCHEMA)
    merge.detach(1)
    assert feed(merge, 0, Insert(0, 12, A), Cti(3)) == [Insert(0, 12, A), Cti(3)]
    merge.attach(1, join=10)
    assert feed(merge, 1, Insert(0, 12, A), Insert(14, 18, B), Cti(15)) == [Insert(14, 18, B)]
    assert not merge.joined(1)
    assert feed(merge, 0, Cti(9)) == [Cti(9)]
    assert feed(merge, 0, Cti(10)) == [Cti(15)]  # it has joined, and is ahead
    merge.detach(0)
    assert feed(merge, 1, END) == [END]


@pytest.mark.parametrize("algorithm", ["R0", "R1", "R2"])
def test_in_order_what_was_left_out_of_a_late_input_must_come_from_another(algorithm):
    merge = ALGORITHMS[algorithm](SCHEMA)
    merge.detach(1)
    feed(merge, 0, Insert(1, 2, A))
    merge.attach(1, join=3)
    assert feed(merge, 1, Insert(4, 5, A), Insert(6, 7, A)) == []  # nobody knows yet what starts before 3
    assert feed(merge, 0, Insert(3, 4, B)) == [Insert(3, 4, B)]
    assert feed(merge, 1, Insert(8, 9, A)) == []  # 4 and 6 would be lost
    rest = [Insert(4, 5, A), Insert(6, 7, A), Insert(8, 9, A), Insert(9, 10, A)]
    assert feed(merge, 0, *rest) == rest
    assert feed(merge, 1, Insert(9, 10, A), Insert(11, 12, B)) == [Insert(11, 12, B)]


def test_what_only_a_lost_input_sent_is_retracted():
    merge = ALGORITHMS["R3"](SCHEMA)
    assert feed(merge, 0, Insert(5, 9, A)) == [Insert(5, 9, A)]
    merge.detach(0)
    assert feed(merge, 1, Insert(6, 9, B), Cti(6)) == [Insert(6, 9, B), Adjust(5, 9, 5, A), Cti(6)]


@pytest.mark.parametrize("algorithm", ["R3", "R3-", "R4"])
def test_an_element_is_emitted_if_the_input_that_moves_the_cti_past_it_has_it(algorithm):
    # V-C: input 1 lacks A, input 0 lacks B
    merge = ALGORITHMS[algorithm](SCHEMA)
    out = feed(merge, 0, Insert(1, 3, A), Cti(4))
    out += feed(merge, 1, Insert(4, 6, B), END)
    assert canonical(out) == History([(1, 3, A), (4, 6, B)])


@pytest.mark.parametrize("algorithm", ["R0", "R1", "R2"])
def test_in_order_an_element_is_emitted_if_it_comes_before_any_later_one(algorithm):
    merge = ALGORITHMS[algorithm](SCHEMA)
    out = feed(merge, 0, Insert(1, 3, A), Insert(4, 6, C))
    out += feed(merge, 1, Insert(2, 4, B), Insert(4, 6, C), Insert(5, 6, A), END)
    assert canonical(out) == History([(1, 3, A), (4, 6, C), (5, 6, A)])


# --- what an algorithm does not take is named ----------------------------------------------------------------------


REFUSED = {
    "R0 adjust": (
        "R0",
        [Insert(1, 5, A), Adjust(1, 5, 4, A)],
        "input 1: R0 takes inserts only; R3 and R4 take adjusts",
    ),
    "R0 tie": ("R0", [Insert(1, 5, A), Insert(1, 5, B)], "input 1: R0 needs starts that strictly increase, and 1 came"),
    "R1 disorder": ("R1", [Insert(2, 5, A), Insert(1, 5, B)], "input 1: R1 needs starts that never fall, and 2 came"),
    "R1 order of ties": (
        "R1",
        [Insert(7, 8, B), Insert(7, 8, A)],
        "at 7 number 1 was another event; R2 takes any order",
    ),
    "R2 disorder": ("R2", [Insert(2, 5, A), Insert(1, 5, B)], "input 1: R2 needs starts that never fall, and 2 came"),
    "R2 adjust": ("R2", [Insert(2, 5, A), Adjust(2, 5, 4, A)], "input 1: R2 takes inserts only"),
    "R3 copy": (
        "R3",
        [Insert(8, 9, A), Insert(8, 10, A)],
        "R3 needs a key of start and payload, and this input has one",
    ),
    "R3 unknown": (
        "R3",
        [Insert(8, 9, A), Adjust(8, 12, 10, A)],
        "no such event to adjust; .* payload ends at 9",
    ),
}


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize(("algorithm", "elements", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_breaks_the_restriction_is_named_and_the_others_go_on(algorithm, elements, message, one_by_one):
    merge = ALGORITHMS[algorithm](SCHEMA)
    true = [Insert(7, 8, A)]
    out = feed(merge, 0, *true)
    parts = [[e] for e in elements] if one_by_one else [elements]
    with pytest.raises(StreamError, match=message) as caught:
        feed_all(merge, 1, parts, out)
    assert caught.value.element in elements
    assert caught.value.position == elements.index(caught.value.element)
    merge.detach(1, str(caught.value))
    out += feed(merge, 0, Insert(9, 12, B), END)
    validate(out)
    if algorithm not in ("R0", "R1", "R2"):
        assert canonical(out) == History([(7, 8, A), (9, 12, B)])


def test_in_one_chunk_an_event_may_be_sent_again_before_it_is_retracted():
    # operators that revise results may do so; only the net effect of a chunk must have a key
    merge = ALGORITHMS["R3"](SCHEMA)
    feed(merge, 0, Insert(1, 9, A))
    assert feed(merge, 0, Insert(1, 5, A), Adjust(1, 9, 1, A), Cti(6)) == [Adjust(1, 9, 5, A), Cti(6)]


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("algorithm", ["R3", "R3-", "R4"])
@pytest.mark.parametrize("sent", [[], [Insert(1, 3, A)]], ids=["missing", "ended before"])
def test_inputs_that_contradict_each_other_are_named(algorithm, sent):
    # input 0 has settled that A goes on until 5
    merge = ALGORITHMS[algorithm](SCHEMA)
    out = feed(merge, 0, Insert(1, 9, A), Cti(5))
    with pytest.raises(StreamError, match=r"p=A \[1, 9\): merge, input 1: another input has settled that .* until 5"):
        feed(merge, 1, *sent, Cti(7))
    merge.detach(1)
    out += feed(merge, 0, Adjust(1, 9, 6, A), END)
    assert canonical(out) == History([(1, 6, A)])


def test_mistakes_about_inputs():
    merge = ALGORITHMS["R3"](SCHEMA)
    with pytest.raises(QueryError, match="there is no input 2; inputs are 0 to 1"):
        merge.detach(2)
    with pytest.raises(QueryError, match="input 0 is attached already; detach it before"):
        merge.attach(0)
    merge.detach(0, "its network is gone")
    with pytest.raises(QueryError, match="input 0, which is not attached \\(its network is gone\\); attach"):
        feed(merge, 0, Cti(1))
    with pytest.raises(
        QueryError, match=r"R0 emits an event as soon as one input has it, .* 'leader'; use algorithm R3"
    ):
        ALGORITHMS["R0"](SCHEMA, 2, "leader")
    with pytest.raises(QueryError, match="emits is 'last'; it is one of 'first', 'reflect'"):
        ALGORITHMS["R3"](SCHEMA, 2, "last")
