"""Finalize: whatever arrives, a valid stream leaves, and what is not in it is in the late stream."""

from collections import Counter
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import arrivals_of, check_against_oracle, run, runs

from cedr import testing
from cedr.columnar.chunk import NEW, OLD, TIMES, VS, Chunk, chunk_of
from cedr.operators.finalize.finalize import FinalizeOperator
from cedr.temporal import INF, MIN, Adjust, Cti, ExternalCti, History, Insert, Row, canonical
from cedr.temporal.errors import QueryError, StreamError
from cedr.temporal.stream import closed_up_to, data, ordered, validate
from cedr.testing import assert_same, rows

SCHEMA = {"m": pl.Int64, "v": pl.Int64}
payloads = rows(m=st.integers(0, 1), v=st.one_of(st.none(), st.integers(0, 1)))
P, Q = Row(m=0, v=1), Row(m=1, v=None)


def emitted(finalize, *slices):
    """The data elements that leave after each slice, as text, and the CTI after it."""
    found = []
    for elements in slices:
        out = finalize.process(0, chunk_of(elements, SCHEMA))
        found.append(([str(e) for e in data(out.elements())], finalize.cti_out))
    return found


def reasons(finalize):
    return Counter(finalize.take_late()["reason"])


# --- valid input ---------------------------------------------------------------------------------------------------


@given(runs(payloads))
def test_a_valid_stream_passes_as_it_is(run):
    arrivals, restore_at = run
    finalizes = []

    def make():
        finalizes.append(FinalizeOperator(SCHEMA))
        return finalizes[-1]

    out = check_against_oracle(make, lambda h: h, arrivals, [SCHEMA], restore_at)
    assert data(out) == data([e for _, elements in arrivals for e in elements])
    assert finalizes[-1].late_counts == {}
    assert finalizes[-1].state_size()[0] == 0


@given(runs(payloads, ordered=True))
def test_an_ordered_stream_stays_ordered(run):
    assert ordered(data(check_against_oracle(lambda: FinalizeOperator(SCHEMA), lambda h: h, run[0], [SCHEMA], run[1])))


@given(runs(payloads, adjusts=False, ghosts=0))
def test_insert_only_needs_no_store(run):
    finalize = FinalizeOperator(SCHEMA, insert_only=True)
    check_against_oracle(lambda: FinalizeOperator(SCHEMA, insert_only=True), lambda h: h, run[0], [SCHEMA], run[1])
    for _, elements in run[0]:
        finalize.process(0, chunk_of(elements, SCHEMA))
        assert finalize.state_size()[0] == 0
        assert finalize.cti == finalize.cti_out


# --- broken chains -------------------------------------------------------------------------------------------------


@st.composite
def wandering(draw):
    """Tuples with few starts and payloads that wander between few ends: copies, circles, removals."""
    tuples, elements = [], []
    moves = st.tuples(
        st.integers(0, 4), st.integers(0, 9), st.integers(0, 1), st.sampled_from([4, 6, 9, INF]), payloads
    )
    for move, which, vs, end, p in draw(st.lists(moves, max_size=14)):
        if move == 0 or not tuples:
            tuples.append((vs, end, p))
            elements.append(Insert(vs, end, p))
            continue
        vs, old, p = tuples.pop(which % len(tuples))
        new = end if move < 4 else vs
        tuples += [(vs, new, p)] if new != vs else []
        elements += [Adjust(vs, old, new, p)] if old != new else []
    return History(tuples), elements


@st.composite
def broken(draw):
    """A history, and a stream of it in any order at all, its progress promised by CTIs or by counts."""
    if draw(st.booleans()):
        history, elements = draw(wandering())
    else:
        history = draw(testing.histories(payloads, 4))
        elements = data(draw(testing.streams_of(history, payloads=payloads)))
    elements = draw(st.permutations(elements))
    if draw(st.booleans()):
        return history, draw(testing.promised(elements, closed=True))
    return history, draw(counted(elements))


@st.composite
def counted(draw, elements):
    """External CTIs with true counts that cover all time from 0, anywhere in the stream."""
    cuts = [0, *sorted(draw(st.sets(st.integers(1, 30), max_size=4))), INF]
    spans = [ExternalCti(a, b, sum(a <= e.sync < b for e in elements)) for a, b in pairwise(cuts)]
    result = list(elements)
    for span in spans:
        result.insert(draw(st.integers(0, len(result))), span)
    return result


@given(broken(), st.data())
def test_any_order_of_chains_ends_in_the_right_tuples(drawn, data):
    # The output is valid, has at each of its CTIs what holds in the end, and nothing is late.
    history, stream = drawn
    arrivals = data.draw(arrivals_of([stream]))
    restore_at = data.draw(st.sets(st.integers(0, len(arrivals) - 1), max_size=2))
    finalizes = []

    def make():
        finalizes.append(FinalizeOperator(SCHEMA, origin=0))
        return finalizes[-1]

    out = []
    for produced in run(make, arrivals, [SCHEMA], restore_at):
        out += produced
        settled = closed_up_to(out)
        assert_same(canonical(out).to(settled), history.to(settled))
    validate(out)
    assert_same(canonical(out), history)
    assert closed_up_to(out) == INF
    assert finalizes[-1].late_counts == {}


@given(broken())
def test_the_late_stream_stays_empty_when_chains_are_only_out_of_order(drawn):
    finalize = FinalizeOperator(SCHEMA, late="raise", origin=0)
    for e in drawn[1]:
        finalize.process(0, chunk_of([e], SCHEMA))
    assert finalize.take_late().is_empty()


@pytest.mark.parametrize(("end", "count"), [(8, 4), (9, 5)])
@pytest.mark.parametrize("slices", ["one each", "one"])
def test_table_5_of_the_report(end, count, slices):
    # The report has [0, 8) and 5 for its ExternalCTI; of the five elements one has sync time 8 (docs/papers.md).
    #              0  1  2  3  4  5  6  7  8  9
    # insert P     ##############################    leaves as [0, 4)
    # insert Q        ############
    stream = [
        Adjust(0, 10, 8, P),
        Adjust(0, 6, 4, P),
        Adjust(0, 8, 6, P),
        Insert(0, 10, P),
        ExternalCti(0, end, count),
        Insert(1, 5, Q),
    ]
    out = emitted(FinalizeOperator(SCHEMA), *([stream] if slices == "one" else [[e] for e in stream]))
    assert [element for elements, _ in out for element in elements] == [
        "insert m=0, v=1 [0, 4)",
        "insert m=1, v=None [1, 5)",
    ]
    assert out[-1][1] == end
    assert [cti for _, cti in out[:-1]] == [MIN] * (len(out) - 1)


def test_an_adjust_that_fills_a_gap_leaves_with_what_waited_for_it():
    assert emitted(
        FinalizeOperator(SCHEMA),
        [Insert(0, 10, P)],
        [Adjust(0, 8, 12, P)],
        [Adjust(0, 12, 7, P)],
        [Adjust(0, 10, 8, P)],
    ) == [
        (["insert m=0, v=1 [0, 10)"], MIN),
        ([], MIN),
        ([], MIN),
        (["adjust m=0, v=1 [0, 10) to 7"], MIN),
    ]


def test_a_removal_that_comes_first_removes():
    finalize = FinalizeOperator(SCHEMA)
    assert emitted(finalize, [Adjust(1, 5, 1, P)], [Insert(1, 5, P)], [Insert(1, 5, P), Cti(INF)]) == [
        ([], MIN),
        ([], MIN),
        (["insert m=0, v=1 [1, 5)"], INF),
    ]
    assert finalize.late_counts == {}


def test_a_missing_link_holds_the_cti_back():
    finalize = FinalizeOperator(SCHEMA)
    assert emitted(
        finalize, [Insert(0, 10, P)], [Adjust(0, 12, 4, P)], [Cti(5)], [Insert(5, 6, Q)], [Adjust(0, 10, 12, P)]
    ) == [
        (["insert m=0, v=1 [0, 10)"], MIN),
        ([], MIN),
        ([], 4),
        (["insert m=1, v=None [5, 6)"], 4),
        (["adjust m=0, v=1 [0, 10) to 4"], 5),
    ]
    assert finalize.late_counts == {}


def test_what_hangs_on_a_held_adjust_waits_with_it():
    # 10 -> 12 -> 4 -> 20: nothing that comes after CTI 5 can end at 4, but the held 12 -> 4 does
    finalize = FinalizeOperator(SCHEMA)
    elements = [Insert(0, 10, P), Adjust(0, 4, 20, P), Adjust(0, 12, 4, P)]
    assert emitted(finalize, elements, [Cti(5)], [Adjust(0, 10, 12, P)])[1:] == [
        ([], 4),
        (["adjust m=0, v=1 [0, 10) to 20"], 5),
    ]
    assert finalize.late_counts == {}


def test_a_link_that_can_no_longer_come_holds_nothing_back():
    finalize = FinalizeOperator(SCHEMA)
    assert [
        cti for _, cti in emitted(finalize, [Insert(0, 20, P), Adjust(0, 12, 4, P)], [Cti(5)], [Cti(12)], [Cti(13)])
    ] == [
        MIN,
        4,
        4,
        13,
    ]
    assert reasons(finalize) == {"unknown_tuple": 1}


def test_an_adjust_without_any_tuple_holds_nothing_back():
    finalize = FinalizeOperator(SCHEMA)
    assert emitted(finalize, [Insert(0, INF, Q), Adjust(0, INF, 4, P), Cti(4)], [Cti(5)])[1] == ([], 5)
    assert finalize.take_late()["message"].to_list() == [
        "element 1, adjust m=0, v=1 [0, ∞) to 4: there is no tuple m=0, v=1 [0, ∞) to adjust; "
        "it was never inserted, or was removed"
    ]


def test_adjusts_in_a_circle_have_no_effect():
    # 4 -> 6 -> 4 -> 9, but 4 -> 9 comes first
    finalize = FinalizeOperator(SCHEMA)
    out = emitted(
        finalize, [Insert(0, 4, P)], [Adjust(0, 4, 9, P)], [Adjust(0, 4, 6, P)], [Adjust(0, 6, 4, P)], [Cti(5)]
    )
    assert out[1:] == [(["adjust m=0, v=1 [0, 4) to 9"], MIN), ([], MIN), ([], MIN), ([], 5)]
    assert (finalize.cancelled, finalize.late_counts) == (2, {})


# --- any input -----------------------------------------------------------------------------------------------------

times = st.one_of(st.integers(0, 9), st.just(INF))


@st.composite
def garbage(draw):
    """Chunks with any rows and promises at all."""
    row = st.tuples(times, times, times, st.integers(0, 1), st.none())
    starts = st.integers(0, 9).flatmap(
        lambda vs: st.tuples(st.just(vs), st.just(vs), times, st.integers(0, 1), st.none())
    )
    spans = st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 3)).map(
        lambda s: ExternalCti(s[0], s[0] + s[1], s[2])
    )
    found = []
    for content in draw(st.lists(st.lists(st.one_of(row, starts, starts), max_size=5), max_size=6)):
        frame = pl.DataFrame(content, schema={**dict.fromkeys(TIMES, pl.Int64), **SCHEMA}, orient="row")
        cti = draw(st.one_of(st.just(MIN), st.just(MIN), st.integers(0, 12)))
        found.append(Chunk(frame, cti, tuple(draw(st.lists(spans, max_size=1)))))
    return found


def flow(frame):
    """How often each tuple is there when all these rows have been worked in."""
    bag = Counter()
    for vs, old, new, *payload in frame.iter_rows():
        bag[vs, old, *payload] -= old != vs
        bag[vs, new, *payload] += new != vs
    return {t: n for t, n in bag.items() if n}


settings = st.fixed_dictionaries(
    {"remember": st.sampled_from([0, 3, INF]), "insert_only": st.booleans(), "origin": st.sampled_from([None, 0])}
)


@given(garbage(), settings)
def test_what_leaves_and_what_is_late_is_what_came(chunks, settings):
    finalize = FinalizeOperator(SCHEMA, **settings)
    out = [finalize.process(0, chunk) for chunk in [*chunks, chunk_of([Cti(INF)], SCHEMA)]]
    validate([e for chunk in out for e in chunk.elements()])
    late = finalize.take_late()
    assert Counter(late["reason"]) == finalize.late_counts
    came = Counter(row for chunk in chunks for row in chunk.rows.iter_rows())
    kept = came - Counter(
        late.filter(pl.col(OLD).is_not_null()).select(chunks[0].rows.columns if chunks else []).rows()
    )
    accepted = pl.DataFrame(list(kept.elements()), schema={**dict.fromkeys(TIMES, pl.Int64), **SCHEMA}, orient="row")
    assert flow(accepted) == flow(pl.concat([chunk.rows for chunk in out]))
    assert kept.total() + finalize.late_counts.total() == came.total() + late[OLD].null_count()
    spans = sum(len(chunk.external) for chunk in chunks)
    assert late[OLD].null_count() + finalize.ignored["past_external_cti"] <= spans


def content(finalize):
    """A snapshot in a form that compares; how payloads are numbered and tuples stored is nobody's business."""
    state = finalize.snapshot()
    chains, late, external = (state.pop(name) for name in ("chains", "late", "external"))
    payloads = chains["index"].rows()
    vs, pid, end, count = (column.tolist() for column in chains["store"])
    state["tuples"] = sorted(zip(vs, [payloads[i] for i in pid], end, count, strict=True), key=str)
    vs, pid, *others = (column.tolist() for column in chains["held"].values())
    state["held"] = [vs, [payloads[i] for i in pid], *others]
    state["late"] = (late["counts"], [] if late["pieces"] is None else late["pieces"].rows())
    state["external"] = (external["spans"], [] if external["syncs"] is None else external["syncs"].tolist())
    return state


@given(garbage(), settings)
def test_raising_leaves_the_state_as_it_was(chunks, settings):
    strict, lenient = FinalizeOperator(SCHEMA, late="raise", **settings), FinalizeOperator(SCHEMA, **settings)
    for chunk in chunks:
        before = content(strict)
        try:
            out = strict.process(0, chunk)
        except StreamError:
            assert content(strict) == before
        else:
            assert out.rows.equals(lenient.process(0, chunk).rows)
            assert content(strict) == content(lenient)
            assert lenient.late_counts == {}


@given(garbage(), settings, st.integers(0, 5))
def test_restored_it_goes_on_as_if_nothing_had_happened(chunks, settings, at):
    one, two = FinalizeOperator(SCHEMA, **settings), FinalizeOperator(SCHEMA, **settings)
    for i, chunk in enumerate(chunks):
        if i == at:
            state, two = two.snapshot(), FinalizeOperator(SCHEMA, **settings)
            two.restore(state)
        a, b = one.process(0, chunk), two.process(0, chunk)
        assert a.elements() == b.elements()
    assert one.take_late().equals(two.take_late())
    assert one.late_counts == two.late_counts
    assert one.ignored == two.ignored


# --- the late stream -----------------------------------------------------------------------------------------------


def test_below_a_cti():
    finalize = FinalizeOperator(SCHEMA)
    assert emitted(finalize, [Insert(5, 9, P), Cti(6)], [Insert(5, 7, P), Adjust(5, 9, 6, P), Adjust(5, 6, 5, P)]) == [
        (["insert m=0, v=1 [5, 9)"], 6),
        (["adjust m=0, v=1 [5, 9) to 6"], 6),
    ]
    assert finalize.late_counts == {"below_cti": 2}
    late = finalize.take_late()
    assert late.columns == [*TIMES, "m", "v", "reason", "message"]
    assert late.drop("message").rows() == [(5, 5, 7, 0, 1, "below_cti"), (5, 6, 5, 0, 1, "below_cti")]
    assert late["message"].to_list() == [
        "element 2, insert m=0, v=1 [5, 7): its sync time 5 lies before 6, but cti 6 promised that nothing before it "
        "would come",
        "element 4, adjust m=0, v=1 [5, 6) to 5: its sync time 5 lies before 6, but cti 6 promised that nothing before "
        "it would come",
    ]
    assert finalize.take_late().is_empty()
    assert finalize.late_counts == {"below_cti": 2}


def test_no_lifetime():
    columns = {VS: [1, 5, 5, 5, None, 3], OLD: [1, 5, 6, 6, 1, 2], NEW: [2, 5, 4, 6, 2, 4]}
    frame = pl.DataFrame({**columns, "m": [0] * 6, "v": [1] * 6}, schema={**dict.fromkeys(TIMES, pl.Int64), **SCHEMA})
    finalize = FinalizeOperator(SCHEMA)
    assert [str(e) for e in finalize.process(0, Chunk(frame)).elements()] == ["insert m=0, v=1 [1, 2)"]
    assert finalize.late_counts == {"no_lifetime": 5}
    assert finalize.take_late()["message"].to_list() == [
        f"element {position}, {element}: {promise}"
        for position, element, promise in [
            (4, "adjust m=0, v=1 [None, 1) to 2", "a time is missing"),
            (1, "insert m=0, v=1 [5, 5)", NO_LIFETIME),
            (2, "adjust m=0, v=1 [5, 6) to 4", NO_LIFETIME),
            (3, "adjust m=0, v=1 [5, 6) to 6", NO_LIFETIME),
            (5, "adjust m=0, v=1 [3, 2) to 4", NO_LIFETIME),
        ]
    ]


NO_LIFETIME = "its times are not a valid lifetime: an end must be after the start, and an adjust must change the end"


def test_only_inserts_were_expected():
    finalize = FinalizeOperator(SCHEMA, insert_only=True)
    assert emitted(finalize, [Insert(1, 5, P), Adjust(1, 5, 3, P)]) == [(["insert m=0, v=1 [1, 5)"], MIN)]
    (message,) = finalize.take_late()["message"]
    assert message == (
        "element 1, adjust m=0, v=1 [1, 5) to 3: there is no tuple m=0, v=1 [1, 5) to adjust; "
        "no tuple is kept, as only inserts were expected"
    )


def test_forgotten():
    finalize = FinalizeOperator(SCHEMA, remember=3)
    assert [
        cti for _, cti in emitted(finalize, [Insert(10, 20, P), Insert(2, 20, P)], [Insert(6, 9, P), Insert(7, 9, Q)])
    ] == [7, 7]
    (row,) = finalize.take_late().rows(named=True)
    assert (row["_vs"], row["reason"]) == (6, "forgotten")
    assert row["message"] == (
        "element 2, insert m=0, v=1 [6, 9): its sync time 6 lies before 7; what is more than 3 before the highest sync "
        "time seen is forgotten"
    )


def test_a_held_adjust_is_forgotten_too():
    finalize = FinalizeOperator(SCHEMA, remember=3)
    out = emitted(finalize, [Insert(0, 10, P), Adjust(0, 12, 4, P), Cti(5)], [Insert(20, 21, Q)])
    assert [cti for _, cti in out] == [5 - 1, 17]
    assert finalize.take_late()["message"].to_list() == [
        "element 1, adjust m=0, v=1 [0, 12) to 4: its sync time 4 lies before 17, where memory ends"
    ]


def test_weak_remembers_nothing_but_the_present():
    finalize = FinalizeOperator(SCHEMA, remember=0)
    assert [
        cti for _, cti in emitted(finalize, [Insert(5, 9, P)], [Insert(4, 9, P)], [Insert(5, 6, P), Insert(6, 7, P)])
    ] == [5, 5, 6]
    assert reasons(finalize) == {"forgotten": 1}


def test_payload_columns_named_like_those_of_the_late_stream():
    finalize = FinalizeOperator({"message": pl.String(), "b": pl.Boolean(), "l": pl.List(pl.Int64)})
    elements = [Insert(1, 2, Row(message="hi", b=True, l=(1, 2)))]
    finalize.process(0, chunk_of([Cti(5)], finalize.schema))
    finalize.process(0, chunk_of(elements, finalize.schema))
    late = finalize.take_late()
    assert late["_reason"].to_list() == ["below_cti"]
    assert "insert message=hi, b=True, l=[1, 2] [1, 2): " in late["_message"][0]


def test_without_payload():
    finalize = FinalizeOperator({})
    chunks = [[Adjust(1, 5, 3, Row())], [Insert(1, 5, Row())], [Adjust(2, 5, 4, Row())], [Cti(9)]]
    out = [e for c in chunks for e in finalize.process(0, chunk_of(c, {})).elements()]
    assert out == [Insert(1, 3, Row()), Cti(9)]
    assert len(finalize.take_late()) == 1


def test_raise_names_the_first_element_and_the_promise():
    finalize = FinalizeOperator(SCHEMA, late="raise")
    emitted(finalize, [Insert(1, 9, P), Cti(4)])
    with pytest.raises(StreamError) as caught:
        emitted(finalize, [Insert(4, 9, P), Insert(2, 9, Q), Insert(3, 9, P)])
    assert (caught.value.element, caught.value.position) == (Insert(2, 9, Q), 3)
    assert str(caught.value) == (
        "element 3, insert m=1, v=None [2, 9): its sync time 2 lies before 4, but cti 4 promised that nothing before "
        "it would come"
    )
    assert finalize.late_counts == {}
    assert emitted(finalize, [Insert(4, 9, P)]) == [(["insert m=0, v=1 [4, 9)"], 4)]


# --- progress ------------------------------------------------------------------------------------------------------


def test_a_cti_that_goes_back_is_ignored_and_counted():
    finalize = FinalizeOperator(SCHEMA)
    assert [cti for _, cti in emitted(finalize, [Cti(5)], [Cti(3)], [Cti(5)], [Insert(5, 6, P)])] == [5] * 4
    assert finalize.ignored == {"backward_cti": 1}


def test_external_ctis_out_of_order():
    #          0    5    10   15
    # counts   | 1  | 0  | 1  |
    finalize = FinalizeOperator(SCHEMA, origin=0)
    assert [
        cti
        for _, cti in emitted(
            finalize,
            [ExternalCti(5, 10, 0)],
            [ExternalCti(10, 15, 1)],
            [Insert(12, 20, P)],
            [ExternalCti(0, 5, 1)],
            [Insert(3, 9, Q)],
        )
    ] == [MIN, MIN, MIN, MIN, 15]


def test_without_an_origin_spans_begin_at_the_lowest_time_known():
    assert emitted(FinalizeOperator(SCHEMA), [ExternalCti(5, 10, 0)])[0][1] == 10
    finalize = FinalizeOperator(SCHEMA)
    assert [
        cti for _, cti in emitted(finalize, [Insert(3, 9, P)], [ExternalCti(5, 10, 0)], [ExternalCti(0, 5, 1)])
    ] == [
        MIN,
        MIN,
        10,
    ]


def test_spans_follow_on_from_the_last_cti():
    finalize = FinalizeOperator(SCHEMA)
    assert [
        cti for _, cti in emitted(finalize, [Cti(5)], [ExternalCti(7, 9, 0)], [Cti(6)], [ExternalCti(6, 7, 0)])
    ] == [
        5,
        5,
        6,
        9,
    ]


def test_the_larger_promise_holds():
    finalize = FinalizeOperator(SCHEMA)
    assert [
        cti for _, cti in emitted(finalize, [ExternalCti(0, 5, 0)], [Cti(3)], [Cti(8)], [ExternalCti(5, 10, 0)])
    ] == [
        5,
        5,
        8,
        10,
    ]


def test_overlapping_spans():
    finalize = FinalizeOperator(SCHEMA)
    emitted(finalize, [ExternalCti(0, 5, 1)], [ExternalCti(4, 8, 1)])
    (row,) = finalize.take_late().rows(named=True)
    assert (row["_vs"], row["_ve_old"], row["_ve_new"], row["m"], row["reason"]) == (0 + 4, None, 8, None, "overlap")
    assert row["message"] == (
        "element 1, external cti [4, 8) of 1: it overlaps external cti [0, 5) of 1; "
        "spans of external CTIs must not share an instant"
    )
    with pytest.raises(StreamError, match="overlaps") as caught:
        emitted(FinalizeOperator(SCHEMA, late="raise"), [ExternalCti(0, 5, 1)], [ExternalCti(4, 8, 1)])
    assert caught.value.element == ExternalCti(4, 8, 1)


def test_a_span_of_the_past_is_ignored():
    finalize = FinalizeOperator(SCHEMA)
    emitted(finalize, [ExternalCti(0, 5, 0)], [ExternalCti(0, 5, 0)])
    assert finalize.ignored == {"past_external_cti": 1}
    assert finalize.late_counts == {}


def test_more_elements_than_promised():
    finalize = FinalizeOperator(SCHEMA)
    out = emitted(
        finalize,
        [Insert(1, 9, P), Insert(0, 9, P), ExternalCti(0, 3, 1)],
        [ExternalCti(4, 6, 1), ExternalCti(6, 8, 2)],
        [Insert(5, 9, P), Insert(5, 9, Q), Insert(7, 9, P)],
        [Insert(7, 9, P), Insert(7, 8, Q), Insert(8, 9, P)],
    )
    assert [len(elements) for elements, _ in out] == [2, 0, 2, 2]
    late = finalize.take_late()
    assert late.select(VS, "reason").rows() == [(0, "count_exceeded"), (5, "count_exceeded"), (7, "count_exceeded")]
    assert late["message"].to_list() == [
        "element 2, external cti [0, 3) of 1: it promises 1 elements with a sync time in [0, 3), but 2 came already",
        "element 6, insert m=1, v=None [5, 9): external cti [4, 6) of 1 promised no more than 1 elements with a sync "
        "time in it, all came before",
        "element 9, insert m=1, v=None [7, 8): external cti [6, 8) of 2 promised no more than 2 elements with a sync "
        "time in it, all came before",
    ]


def test_a_forgotten_element_still_counts():
    # [0, 10) expects 2; one of them is forgotten, but it came.
    finalize = FinalizeOperator(SCHEMA, remember=2)
    out = emitted(finalize, [ExternalCti(0, 10, 2)], [Insert(7, 9, P)], [Insert(1, 9, P)])
    assert [cti for _, cti in out] == [MIN, 5, 10]
    assert reasons(finalize) == {"forgotten": 1}


def test_unexpected_external_ctis_are_ignored():
    finalize = FinalizeOperator(SCHEMA, external=False)
    assert emitted(finalize, [ExternalCti(0, 5, 0)]) == [([], MIN)]
    assert finalize.ignored == {"external_cti": 1}


# --- memory --------------------------------------------------------------------------------------------------------


def test_state_stays_small():
    schema, rng = {"m": pl.Int64}, np.random.default_rng(7)
    finalize = FinalizeOperator(schema)
    inserted = ended = 0
    for step in range(200):
        vs = np.arange(step * 1000, step * 1000 + 1000)
        end = np.where(rng.random(1000) < 0.5, INF, vs + 50)
        inserts = pl.DataFrame({VS: vs, OLD: vs, NEW: end, "m": vs * 7})
        open_ = inserts.filter(pl.col(NEW) == INF)
        ends = open_.with_columns(pl.col(NEW).alias(OLD), (pl.col(VS) + 60).alias(NEW))
        strays = ends.head(5).with_columns(m=pl.col("m") + 1)
        out = finalize.process(0, Chunk(pl.concat([ends, inserts, strays]), int(vs[-1])))
        inserted, ended = inserted + len(out), ended + len(open_)
        assert finalize.state_size()[0] < 12_000
        assert finalize.state_size()[1] < 3_000_000
        assert len(finalize.snapshot()["chains"]["index"]) < 12_000
    assert inserted == 200 * 1000
    assert finalize.late_counts["unknown_tuple"] >= 5 * 199


def test_many_broken_chains_at_once():
    """Three thousand chains of four elements, all shuffled: tables grow, slots collide, payloads are renumbered."""
    rng = np.random.default_rng(3)
    chains = pl.DataFrame({VS: rng.integers(0, 50, 3000), "m": rng.integers(0, 400, 3000)})
    ends = [chains[VS] + length for length in (0, 30, 20, 40, 10)]
    steps = [chains.select(VS, ends[i].alias(OLD), ends[i + 1].alias(NEW), "m") for i in range(4)]
    frame = pl.concat(steps).sample(fraction=1.0, shuffle=True, seed=3)
    finalize = FinalizeOperator({"m": pl.Int64})
    out = [finalize.process(0, Chunk(frame[at : at + 700])) for at in range(0, frame.height, 700)]
    out.append(finalize.process(0, Chunk(frame.clear(), INF)))
    validate([e for chunk in out for e in chunk.elements()])
    assert flow(pl.concat([chunk.rows for chunk in out])) == flow(frame)
    assert finalize.late_counts == {}


def test_counts_are_forgotten_with_their_cti():
    finalize = FinalizeOperator(SCHEMA, insert_only=True)
    for t in range(300):
        finalize.process(0, chunk_of([Insert(t, t + 1, P), ExternalCti(t, t + 1, 1)], SCHEMA))
    state = finalize.snapshot()["external"]
    assert (state["spans"], state["syncs"]) == ([], None)


@pytest.mark.parametrize(("settings", "message"), [({"remember": -1}, "remember is -1"), ({"late": "drop"}, "'drop'")])
def test_settings_are_checked(settings, message):
    with pytest.raises(QueryError, match=message):
        FinalizeOperator(SCHEMA, **settings)


def test_the_message_of_a_late_row_names_the_promise_of_its_source():
    """A held adjust keeps CTI 4 from being passed on in full; the message still names 4, which is what was promised."""
    p = Row(m=0, v=1)
    finalize = FinalizeOperator({"m": pl.Int64, "v": pl.Int64})
    for e in (Insert(1, 5, p), Adjust(1, 9, 3, p), Cti(4), Insert(2, 6, p)):
        finalize.process(0, chunk_of([e], finalize.schema))
    message = finalize.take_late().filter(pl.col("reason") == "below_cti")["message"].item()
    assert "its sync time 2 lies before 4, but cti 4 promised" in message
