"""Copies in one stream: they come, go, start again, lag and lie; the answer is the one history."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from merge_check import SCHEMA, STREAMS, histories, restored, row
from oracle_check import arrivals_of

import cedr
from cedr import testing
from cedr.columnar.chunk import chunk_of
from cedr.operators.merge.by_column import MergeByOperator
from cedr.reference.merge import compatible
from cedr.temporal import (
    INF,
    MIN,
    Adjust,
    Cti,
    History,
    Insert,
    QueryError,
    Row,
    StreamError,
    canonical,
    validate,
)
from cedr.temporal.punctuation import Constant, Punctuation

TAGGED = {**SCHEMA, "copy": pl.String(), "join": pl.Int64()}
A, B = row("A"), row("B")


def of_copy(elements, name, join=None):
    """The elements as those of a copy: its CTIs are promises about it."""

    def tagged(e):
        match e:
            case Cti(t):
                about = {"copy": Constant(name)} | ({} if join is None else {"join": Constant(join)})
                return Punctuation(about, t)
            case Insert(vs, ve, payload):
                return Insert(vs, ve, Row({**payload, "copy": name, "join": join}))
            case Adjust(vs, old, new, payload):
                return Adjust(vs, old, new, Row({**payload, "copy": name, "join": join}))

    return [tagged(e) for e in elements]


def over(name):
    """The promise that a copy is over."""
    return Punctuation({"copy": Constant(name), "join": Constant(INF)}, 0)


def feed(merge, *elements):
    return merge.process(0, chunk_of(elements, TAGGED)).elements()


def made(algorithm="R3", **how):
    return MergeByOperator(TAGGED, "copy", "join", algorithm=algorithm, **how)


@pytest.mark.parametrize("algorithm", ["R3", "R4"])
@given(data=st.data())
def test_the_history_is_that_of_the_copies_at_every_step(algorithm, data):
    unique, streams = STREAMS[algorithm]
    history = data.draw(histories(unique=unique))
    copies = [data.draw(streams(history)) for _ in range(data.draw(st.integers(1, 3)))]
    merge, out, sent = made(algorithm), [], [[] for _ in copies]
    for port, elements in data.draw(arrivals_of(copies)):
        if data.draw(st.integers(0, 9)) == 0:
            merge = restored(lambda: made(algorithm), merge)
        out += feed(merge, *of_copy(elements, "abc"[port]))
        sent[port] += elements
        assert compatible(sent, out, multiset=True) == []
    validate(out)
    testing.assert_same(canonical(out), history)


@pytest.mark.parametrize("algorithm", ["R3", "R4"])
@given(data=st.data())
def test_a_copy_that_starts_again_counts_from_its_join_time(algorithm, data):
    """Copy b fails and starts again with gaps; a may be over once b has come that far."""
    unique, streams = STREAMS[algorithm]
    history = data.draw(histories(unique=unique))
    join = data.draw(st.integers(0, 30))
    gap = History(e for e in history if e.ve < join and data.draw(st.booleans()))
    first, second, again = (data.draw(streams(h)) for h in (history, history, history - gap))
    second = second[: data.draw(st.integers(0, len(second) - 1))]
    mine = iter(data.draw(testing.slicings(first)))
    theirs = iter([(part, None) for part in data.draw(testing.slicings(second))])
    again = iter([(part, join) for part in data.draw(testing.slicings(again))])
    merge, out, sent = made(algorithm), [], [[], [], [Insert(*e) for e in gap]]
    a_is_over = False
    while True:
        if data.draw(st.booleans()) and not a_is_over:
            if (part := next(mine, None)) is not None:
                out += feed(merge, *of_copy(part, "a"))
                sent[0] += part
        elif (found := next(theirs, None) or next(again, None)) is not None:
            part, since = found
            out += feed(merge, *of_copy(part, "b", since))
            sent[1 if since is None else 2] += part
        elif a_is_over or (part := next(mine, None)) is None:
            break
        else:
            out += feed(merge, *of_copy(part, "a"))
            sent[0] += part
        port = merge.copies.get(("b", join))
        if not a_is_over and port is not None and merge.merge.joined(port) and data.draw(st.booleans()):
            a_is_over = True
            out += feed(merge, over("a"))
        assert compatible(sent, out, multiset=True) == []
    validate(out)
    testing.assert_same(canonical(out), history)


def test_the_latest_copy_of_a_name_counts_in_whatever_order_rows_come():
    merge = made()
    feed(merge, *of_copy([Insert(0, 9, A)], "a", 5))
    assert feed(merge, *of_copy([Insert(0, 4, B), Cti(3)], "a")) == []  # of the one before
    assert merge.ignored == {"a": 1}
    assert feed(merge, *of_copy([Cti(7)], "a", 5)) == []  # no copy has sent what ends before 5
    assert feed(merge, *of_copy([Insert(0, 9, A), Cti(6)], "b")) == [Cti(7)]
    assert feed(merge, over("a")) == []
    assert feed(merge, *of_copy([Cti(8)], "a", 5)) == []
    assert feed(merge, *of_copy([Cti(8)], "b")) == [Cti(8)]


def test_places_of_copies_that_are_over_are_used_again():
    merge = made("R4")
    for number in range(20):
        feed(merge, *of_copy([Insert(number, number + 5, A), Cti(number)], f"v{number}"), over(f"v{number - 1}"))
    assert merge.merge.ports <= 3
    assert list(merge.copies) == [("v19", MIN)]


def test_a_wrong_copy_is_named_or_left_alone():
    def lie(merge):
        feed(merge, *of_copy([Insert(0, 9, A), Cti(5)], "honest"))
        return feed(merge, *of_copy([Insert(3, 4, B), Cti(7)], "liar"))

    with pytest.raises(StreamError, match="copy 'liar': another input has settled that this event goes on until 5"):
        lie(made())
    merge = made(wrong="detach")
    assert lie(merge) == []
    (late,) = merge.take_late().iter_rows(named=True)
    assert late["reason"] == "wrong_copy"
    assert "copy 'liar'" in late["message"]
    assert feed(merge, *of_copy([Cti(INF)], "liar")) == []
    assert merge.ignored == {"liar": 1}
    assert feed(merge, *of_copy([Cti(INF)], "honest")) == [Cti(INF)]


def test_ctis_of_the_whole_count_for_every_copy():
    merge = made()
    assert feed(merge, Cti(3)) == [Cti(3)]
    assert feed(merge, *of_copy([Insert(4, 9, A)], "a"), Cti(INF)) == [Insert(4, 9, A), Cti(INF)]


MISTAKES = {
    "no such column": (lambda s: s.merge_by("kopy"), r"merge_by\('kopy'\).*no column 'kopy'"),
    "no text": (lambda s: s.merge_by("join"), "the column is Int64; names of copies are texts"),
    "join of texts": (lambda s: s.merge_by("copy", join="p"), "join='p' is String; join times are whole numbers"),
    "in order": (lambda s: s.merge_by("copy", algorithm="R0"), "algorithm is 'R0'; it is 'R3' or 'R4'"),
    "nothing left": (lambda s: s.select("copy").merge_by("copy"), "there is nothing to merge"),
    "wrong": (lambda s: s.merge_by("copy", wrong="ignore"), "wrong is 'ignore'; it is one of 'raise', 'detach'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(mistake):
    write, message = MISTAKES[mistake]
    with pytest.raises(QueryError, match=message):
        write(cedr.source("s", TAGGED))


def test_explain_and_findings_know_that_promises_about_copies_are_enough():
    columns = {"p": str, "copy": str, "join": int}
    source = cedr.source(
        "s",
        columns,
        vs="vs",
        ve="ve",
        times=cedr.Times(ve_new="new"),
        progress=cedr.Progress(punctuation="done", promises=["copy"]),
    )
    text = source.merge_by("copy", join="join").explain()
    assert "MergeBy copy, complete from join, first, fastest" in text
    assert "R4, as copies come and go; a payload may be there twice" in text
    (*_, finding) = source.merge_by("copy", join="join").findings()
    assert finding.bounded
    silent = cedr.source("s", columns, vs="vs", ve="ve", times=cedr.Times(ve_new="new"))
    (*_, finding) = silent.merge_by("copy").findings()
    assert not finding.bounded
