"""Finalize and Guard under punctuations: what contradicts one is put aside, and they pass on what is sure."""

from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import arrivals_of, check_against_oracle, meant

from cedr import testing
from cedr.columnar.chunk import OLD, TIMES, Chunk, chunk_of
from cedr.columnar.promises import NONE, PromiseIndex, promises_of
from cedr.operators.finalize.finalize import FinalizeOperator
from cedr.operators.guard import GuardOperator
from cedr.temporal import END, INF, MIN, Adjust, Cti, Insert, Row, canonical
from cedr.temporal.errors import StreamError
from cedr.temporal.punctuation import Punctuation, Range, puncts, punctuation
from cedr.temporal.stream import data, validate, violations
from cedr.testing import assert_same, punctuated, rows

SCHEMA = {"m": pl.Int64, "v": pl.String}
ATTRIBUTES = {"m": [0, 1], "v": [None, "a", "b"]}
payloads = rows(m=st.sampled_from(ATTRIBUTES["m"]), v=st.sampled_from(ATTRIBUTES["v"]))
P, Q = Row(m=0, v="a"), Row(m=1, v=None)
ALL_PAYLOADS = pl.DataFrame([(m, v) for m in ATTRIBUTES["m"] for v in ATTRIBUTES["v"]], schema=SCHEMA, orient="row")


def emitted(operator, *slices):
    """The data elements and the punctuations that leave after each slice, as texts."""
    found = []
    for elements in slices:
        out = operator.process(0, chunk_of(elements, SCHEMA)).elements()
        found.append([str(e) for e in out if not isinstance(e, Cti)])
    return found


@st.composite
def valid(draw, **options):
    stream = draw(testing.streams(payloads, closed=True, **options))
    return [*draw(punctuated(stream[:-1], {name: values[-2:] for name, values in ATTRIBUTES.items()})), END]


@given(valid(), st.data())
def test_a_valid_stream_passes_as_it_is(stream, data_):
    arrivals = data_.draw(arrivals_of([stream]))
    restore_at = data_.draw(st.sets(st.integers(0, len(arrivals) - 1), max_size=2))
    finalizes = []

    def make():
        finalizes.append(FinalizeOperator(SCHEMA))
        return finalizes[-1]

    out = check_against_oracle(make, lambda h: h, arrivals, [SCHEMA], restore_at)
    assert data(out) == data(stream)
    assert finalizes[-1].late_counts == {}


@given(valid(adjusts=False, ghosts=0), st.sampled_from(["Finalize", "Guard"]), st.data())
def test_where_nothing_is_held_every_promise_passes_at_once(stream, kind, data_):
    operator = FinalizeOperator(SCHEMA, insert_only=True) if kind == "Finalize" else GuardOperator(SCHEMA)
    came, left = PromiseIndex(), PromiseIndex()
    for slice_ in data_.draw(testing.slicings(stream)):
        chunk = chunk_of(slice_, SCHEMA)
        out = operator.process(0, chunk)
        came.add(chunk.promises)
        left.add(out.promises)
        settled = operator.cti_out
        assert (came.of(ALL_PAYLOADS).clip(min=settled) == left.of(ALL_PAYLOADS).clip(min=settled)).all()


# --- contradictions ------------------------------------------------------------------------------------------------


@st.composite
def contradicting(draw, **options):
    """A stream with punctuations that it does not always keep."""
    stream = list(draw(testing.streams(payloads, **options)))
    patterns = st.dictionaries(st.sampled_from(["m", "v"]), st.none(), min_size=1)
    for _ in range(draw(st.integers(1, 4))):
        about = {name: draw(testing.patterns_of(ATTRIBUTES[name][-2:])) for name in draw(patterns)}
        before = draw(st.one_of(st.integers(0, 25), st.just(INF)))
        stream.insert(draw(st.integers(0, len(stream))), Punctuation(about, before))
    return stream


@given(contradicting(adjusts=False, ghosts=0), st.sampled_from(["Finalize", "Finalize of inserts", "Guard"]))
def test_what_contradicts_is_what_a_stream_may_not_contain(stream, kind):
    operator = {
        "Finalize": FinalizeOperator(SCHEMA),
        "Finalize of inserts": FinalizeOperator(SCHEMA, insert_only=True),
        "Guard": GuardOperator(SCHEMA),
    }[kind]
    out = []
    for e in stream:
        out += operator.process(0, chunk_of([e], SCHEMA)).elements()
    wrong = violations(stream)
    late = operator.take_late()
    assert Chunk(late.select(*TIMES, *SCHEMA)).elements() == data([error.element for error in wrong])
    assert data(out) == [e for e in data(stream) if not any(error.element is e for error in wrong)]
    validate(out)


@given(contradicting(), st.data())
def test_what_leaves_and_what_is_late_is_what_came(stream, data_):
    finalize = FinalizeOperator(SCHEMA)
    slices = [*data_.draw(testing.slicings(stream)), [END]]
    out = [finalize.process(0, chunk_of(s, SCHEMA)) for s in slices]
    left = [e for chunk in out for e in chunk.elements()]
    validate(left)
    late = finalize.take_late()
    assert Counter(late["reason"]) == finalize.late_counts
    came = Counter(row for s in slices for row in chunk_of(s, SCHEMA).rows.iter_rows())
    accepted = came - Counter(late.select(*TIMES, *SCHEMA).rows())
    assert flow(accepted.elements()) == flow(row for chunk in out for row in chunk.rows.iter_rows())
    assert accepted.total() + late.height == came.total()


def flow(rows_):
    bag = Counter()
    for vs, old, new, *payload in rows_:
        bag[vs, old, *payload] -= old != vs
        bag[vs, new, *payload] += new != vs
    return {t: n for t, n in bag.items() if n}


@given(contradicting(), st.data())
def test_raising_leaves_the_state_as_it_was(stream, data_):
    strict, lenient = FinalizeOperator(SCHEMA, late="raise"), FinalizeOperator(SCHEMA)
    for s in data_.draw(testing.slicings(stream)):
        chunk = chunk_of(s, SCHEMA)
        twin = FinalizeOperator(SCHEMA)
        twin.restore(strict.snapshot())
        try:
            out = strict.process(0, chunk)
        except StreamError:
            probe = chunk_of([Insert(30, 31, P)], SCHEMA)  # as if the chunk had not come
            assert strict.promised[0].of(ALL_PAYLOADS).tolist() == twin.promised[0].of(ALL_PAYLOADS).tolist()
            assert strict.late_counts == {}
            if max(twin.promised[0].of(probe.rows)[0], twin.cti_out) <= 30:
                assert strict.process(0, probe).elements() == twin.process(0, probe).elements()
            return
        assert out.elements() == lenient.process(0, chunk).elements()


def test_the_message_names_the_punctuation():
    finalize = FinalizeOperator(SCHEMA)
    stream = [[punctuation(5, m=0), punctuation(v="a"), punctuation(9, m=Range(1, 3), v=["a", "b"])]]
    emitted(finalize, *stream, [Insert(4, 9, Row(m=0, v="b")), Insert(5, 9, P), Insert(8, 9, Row(m=1, v="b"))])
    late = finalize.take_late()
    assert late["reason"].to_list() == ["below_punctuation"] * 3
    assert [message.split(": ", 1)[1] for message in late["message"]] == [
        "it was promised: no more m=0 before 5",
        "it was promised: no more v=a",
        "it was promised: no more m=1, v=b before 9",
    ]


def test_the_error_names_the_punctuation():
    for operator in (FinalizeOperator(SCHEMA, late="raise"), GuardOperator(SCHEMA, late="raise")):
        emitted(operator, [punctuation(5, m=0)])
        with pytest.raises(StreamError, match=r"insert m=0, v=a \[4, 9\): it was promised: no more m=0 before 5"):
            emitted(operator, [Insert(4, 9, P)])


def test_rows_are_judged_by_what_was_promised_before_their_chunk():
    for operator in (FinalizeOperator(SCHEMA), FinalizeOperator(SCHEMA, insert_only=True), GuardOperator(SCHEMA)):
        assert emitted(operator, [punctuation(5, m=0), Insert(4, 9, P)]) == [
            ["insert m=0, v=a [4, 9)", "no more m=0 before 5"]
        ]
        assert emitted(operator, [Insert(4, 9, P), Insert(4, 9, Q), Insert(5, 9, P)]) == [
            ["insert m=1, v=None [4, 9)", "insert m=0, v=a [5, 9)"]
        ]
        assert operator.late_counts == {"below_punctuation": 1}


def test_after_an_error_the_promises_of_its_chunk_are_not_known():
    finalize = FinalizeOperator(SCHEMA, late="raise")
    emitted(finalize, [punctuation(5, m=0)])
    with pytest.raises(StreamError):
        emitted(finalize, [Insert(4, 9, P), punctuation(m=1)])
    assert emitted(finalize, [Insert(4, 9, Q)]) == [["insert m=1, v=None [4, 9)"]]


# --- broken chains -------------------------------------------------------------------------------------------------


def test_a_missing_link_holds_back_what_is_promised_about_it():
    #          0         4  5              10   12
    # insert   ##############################
    #                    x waits for    ------->        the tuple will end at 4, so `m=0 before 5` has to wait
    finalize = FinalizeOperator(SCHEMA)
    assert emitted(
        finalize,
        [Insert(0, 10, P), Adjust(0, 12, 4, P)],
        [punctuation(5, m=0), punctuation(7, m=1)],
        [Adjust(0, 10, 12, P)],
    ) == [
        ["insert m=0, v=a [0, 10)"],
        ["no more m=0 before 4", "no more m=1 before 7"],
        ["adjust m=0, v=a [0, 10) to 4", "no more m=0 before 5"],
    ]
    assert finalize.late_counts == {}


def test_a_link_that_can_no_longer_come_holds_nothing_back():
    finalize = FinalizeOperator(SCHEMA)
    assert emitted(
        finalize, [Insert(0, 20, P), Adjust(0, 12, 4, P)], [punctuation(5, m=0)], [punctuation(13, m=0)]
    ) == [
        ["insert m=0, v=a [0, 20)"],
        ["no more m=0 before 4"],
        ["no more m=0 before 13"],
    ]
    assert finalize.late_counts == {"unknown_tuple": 1}


@given(st.data())
def test_any_order_of_chains_ends_in_the_right_tuples(data_):
    history = data_.draw(testing.histories(payloads, 4))
    elements = data_.draw(st.permutations(data(data_.draw(testing.streams_of(history, payloads=payloads)))))
    promised = data_.draw(testing.promised(elements))
    stream = [*data_.draw(punctuated(promised, {"m": [0, 1], "v": ["a", "b"]})), END]
    finalize, out = FinalizeOperator(SCHEMA), []
    for s in data_.draw(testing.slicings(stream)):
        out += finalize.process(0, chunk_of(s, SCHEMA)).elements()
        for p in puncts(out):
            assert_same(meant(canonical(out), p), meant(history, p))
    validate(out)
    assert_same(canonical(out), history)
    assert finalize.late_counts == {}


# --- state ---------------------------------------------------------------------------------------------------------


def test_tuples_of_what_is_over_are_forgotten():
    finalize = FinalizeOperator(SCHEMA)
    for key in range(200):
        content = pl.DataFrame({name: range(100) for name in ("_vs", OLD)}).with_columns(
            _ve_new=pl.lit(INF), m=pl.lit(key), v=pl.lit("a")
        )
        over = promises_of([punctuation(m=key - 1)], SCHEMA) if key else NONE
        finalize.process(0, Chunk(content.with_columns(pl.col("m").cast(pl.Int64)), MIN, promises=over))
    assert finalize.state_size()[0] < 2000


def test_a_tuple_that_ends_where_the_promise_does_can_still_be_adjusted():
    finalize = FinalizeOperator(SCHEMA)
    emitted(finalize, [Insert(0, 5, P), Insert(0, 4, P), punctuation(5, m=0)])
    state, finalize = finalize.snapshot(), FinalizeOperator(SCHEMA)
    finalize.restore(state)
    assert finalize.state_size()[0] == 1
    assert emitted(finalize, [Adjust(0, 5, 9, P)]) == [["adjust m=0, v=a [0, 5) to 9"]]
