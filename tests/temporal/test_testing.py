"""The random streams everything else is tested with: valid, true to their options, and as nasty as they claim.

The last part measures how often each kind of trouble is drawn, with a fixed seed, so that the generator cannot quietly
become harmless.
"""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis import strategies as st

from cedr import testing
from cedr.temporal import (
    END,
    INF,
    Adjust,
    Cti,
    ExternalCti,
    History,
    Insert,
    Row,
    canonical,
    closed,
    ordered,
    perfect,
    validate,
    violations,
)
from cedr.temporal.slices import joined
from cedr.temporal.stream import chains, data, timed


def history_and_stream(**options):
    """A history and one stream of it."""
    return testing.histories(max_size=6).flatmap(lambda h: st.tuples(st.just(h), testing.streams_of(h, **options)))


# --- validity and options ------------------------------------------------------------------------------------------

OPTIONS = {
    "default": {},
    "ordered": {"ordered": True},
    "closed": {"closed": True},
    "ordered and closed": {"ordered": True, "closed": True},
    "no adjusts": {"adjusts": False},
    "no growing": {"growing": False},
    "no ghosts": {"ghosts": 0},
    "no ctis": {"ctis": False},
    "no ctis, closed": {"ctis": False, "closed": True},
    "perfect": {"ordered": True, "adjusts": False},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_streams_of_a_history_are_valid_and_give_it_back(options):
    @settings(max_examples=60)
    @given(history_and_stream(**options))
    def law(drawn):
        history, stream = drawn
        assert violations(stream) == []
        testing.assert_same(canonical(stream), history)

    law()


@given(testing.streams(ordered=True))
def test_ordered_streams_are_ordered(stream):
    assert ordered(stream)


@given(testing.streams(ordered=True, closed=True))
def test_closed_streams_are_closed_by_infinity(stream):
    assert closed(stream)
    assert stream[-1] == END


@given(testing.streams(closed=True))
def test_disordered_streams_can_be_closed_too(stream):
    assert closed(stream)


@given(testing.streams(adjusts=False))
def test_without_adjusts_there_are_only_inserts_and_ctis(stream):
    assert all(isinstance(e, Insert | Cti) for e in stream)


@given(testing.streams(adjusts=False, ordered=True))
def test_ordered_without_adjusts_is_perfect(stream):
    assert perfect(stream)


@given(testing.streams(growing=False))
def test_without_growing_every_adjust_is_a_retraction(stream):
    assert all(e.retracts for e in stream if isinstance(e, Adjust))


@given(testing.streams(ghosts=0))
def test_without_ghosts_nothing_is_removed(stream):
    assert not any(e.removes for e in stream if isinstance(e, Adjust))


@given(testing.streams(ctis=False))
def test_without_ctis_there_are_none(stream):
    assert data(stream) == stream


@given(testing.histories(max_size=3, max_time=5, infinite=False))
def test_histories_keep_their_size_and_times(history):
    assert len(history) <= 3
    assert all(0 <= e.vs <= 5 and e.ve <= 10 for e in history)


@given(testing.streams(payloads=testing.rows(machine=st.integers(0, 2), load=st.floats(0, 1)), max_size=3))
def test_payloads_can_be_rows(stream):
    assert all(set(e.payload) == {"machine", "load"} for e in canonical(stream))
    assert all(isinstance(e.payload, Row) for e in canonical(stream))


# --- the same history as other streams, events and slices ----------------------------------------------------------


@given(testing.same_history())
def test_two_streams_have_one_history(pair):
    one, two = pair
    assert canonical(one) == canonical(two)


@given(testing.streams().flatmap(lambda s: st.tuples(st.just(s), testing.shuffled(s))))
def test_a_shuffled_stream_keeps_all_its_elements_and_promises(pair):
    stream, other = pair
    validate(other)
    assert sorted(map(str, other)) == sorted(map(str, stream))
    assert canonical(other) == canonical(stream)


def test_shuffling_leaves_external_ctis_out():
    stream = [Insert(1, 5, "A"), ExternalCti(0, 8, 1)]

    @settings(max_examples=5)
    @given(testing.shuffled(stream))
    def law(other):
        assert other == timed(stream)

    law()


@given(testing.histories().flatmap(lambda h: st.tuples(st.just(h), testing.repackaged(h))))
def test_a_repackaged_history_has_the_same_snapshots(pair):
    history, other = pair
    instants = {*range(2 * testing.MAX_TIME + 2), *history.end_points(), *other.end_points(), INF - 1} - {INF}
    assert all(history.snapshot(t) == other.snapshot(t) for t in instants)
    testing.assert_same_snapshots(history, other)


@given(testing.streams().flatmap(lambda s: st.tuples(st.just(s), testing.slicings(s))))
def test_slices_join_back(drawn):
    stream, slices = drawn
    assert joined(slices) == stream


# --- assertions that explain themselves ----------------------------------------------------------------------------


def test_assert_same_prints_both_differences():
    actual, expected = History([(1, 3, "A"), (5, 6, "C")]), History([(1, 3, "A"), (2, 4, "B")])
    with pytest.raises(AssertionError) as caught:
        testing.assert_same(actual, expected)
    assert str(caught.value).splitlines() == [
        "the histories differ; missing:",
        "Vs  Ve  (Payload)",
        " 2   4  B",
        "not expected:",
        "Vs  Ve  (Payload)",
        " 5   6  C",
    ]


def test_assert_same_snapshots_forgives_other_cuts_but_not_other_tables():
    whole, cut, other = History([(1, 5, "A")]), History([(1, 3, "A"), (3, 5, "A")]), History([(1, 4, "A")])
    testing.assert_same_snapshots(whole, cut)
    with pytest.raises(AssertionError, match="the histories differ"):
        testing.assert_same(whole, cut)
    with pytest.raises(AssertionError, match="the histories differ"):
        testing.assert_same_snapshots(whole, other)


# --- how nasty it really is ----------------------------------------------------------------------------------------


def share(strategy, condition, examples):
    """The share of examples, drawn with a fixed seed, that meets the condition."""
    met = []

    @seed(20070107)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(value):
        met.append(bool(condition(value)))

    draw()
    return sum(met) / len(met)


def adjusts(stream):
    return [e for e in stream if isinstance(e, Adjust)]


TROUBLE = {
    "disorder": lambda s: not ordered(s),
    "data out of order": lambda s: not ordered(data(s)),
    "retractions": lambda s: any(e.retracts and not e.removes for e in adjusts(s)),
    "growing adjusts": lambda s: any(not e.retracts for e in adjusts(s)),
    "growing to infinity": lambda s: any(e.ve_new == INF for e in adjusts(s)),
    "retractions from infinity": lambda s: any(e.ve == INF for e in adjusts(s)),
    "ghosts": lambda s: any(e.removes for e in adjusts(s)),
    "chains of two adjusts": lambda s: any(len(chain) > 2 for chain in chains(s)),
    "infinite ends": lambda s: any(e.ve == INF for e in canonical(s)),
    "copies": lambda s: any(n > 1 for n in canonical(s).bag.values()),
    "ties in sync time": lambda s: len({e.sync for e in data(s)}) < len(data(s)),
    "ctis that promise something": lambda s: any(e.t > 0 for e in s if isinstance(e, Cti)),
    "lulls": lambda s: any(isinstance(a, Cti) and isinstance(b, Cti) and a.t < b.t for a, b in pairwise(s)),
    "ctis repeated": lambda s: any(a == b for a, b in pairwise(s) if isinstance(a, Cti)),
    "data after a cti": lambda s: any(isinstance(a, Cti) and not isinstance(b, Cti) for a, b in pairwise(s)),
    "data ahead of a later cti": lambda s: any(
        isinstance(cti, Cti) and e.sync >= cti.t for i, cti in enumerate(s) for e in data(s[:i])
    ),
    "nothing at all": lambda s: not s,
    "only promises": lambda s: s and not data(s),
}

LEAST = {"copies": 0.005, "growing to infinity": 0.02, "nothing at all": 0.001, "only promises": 0.005}


def test_the_generator_draws_every_kind_of_trouble_often_enough():
    least = {name: LEAST.get(name, 0.05) for name in TROUBLE}
    seen = dict.fromkeys(TROUBLE, 0.0)

    def count(stream):
        for name, condition in TROUBLE.items():
            seen[name] += bool(condition(stream)) / 500
        return True

    assert share(testing.streams(), count, examples=500) == 1
    assert {name: seen[name] for name in TROUBLE if seen[name] < least[name]} == {}


@pytest.mark.parametrize(
    ("name", "strategy", "condition", "least"),
    [
        ("ordered streams still have adjusts", testing.streams(ordered=True), adjusts, 0.3),
        ("ordered streams still have CTIs", testing.streams(ordered=True), lambda s: len(data(s)) < len(s), 0.3),
        ("streams without growing still shrink", testing.streams(growing=False), adjusts, 0.3),
        ("two streams differ", testing.same_history(), lambda pair: pair[0] != pair[1], 0.5),
        (
            "shuffling moves something",
            testing.streams().flatmap(lambda s: st.tuples(st.just(s), testing.shuffled(s))),
            lambda pair: pair[0] != pair[1],
            0.3,
        ),
        (
            "repackaging cuts something",
            testing.histories().flatmap(lambda h: st.tuples(st.just(h), testing.repackaged(h))),
            lambda pair: len(pair[1]) > len(pair[0]),
            0.3,
        ),
        (
            "repackaging merges something",
            testing.histories()
            .flatmap(testing.repackaged)
            .flatmap(lambda h: st.tuples(st.just(h), testing.repackaged(h))),
            lambda pair: len(pair[1]) < len(pair[0]),
            0.05,
        ),
        ("slices can be empty", testing.streams().flatmap(testing.slicings), lambda s: [] in s and joined(s), 0.02),
        (
            "slices can be single elements",
            testing.streams().flatmap(testing.slicings),
            lambda s: len(s) > 1 and all(len(piece) == 1 for piece in s),
            0.05,
        ),
        ("histories meet themselves", testing.histories(), lambda h: len(h.coalesce()) < len(h), 0.01),
        (
            "histories have copies on two levels",
            testing.histories(),
            lambda h: any(n > 1 for t in range(40) for n in h.snapshot(t).values()),
            0.2,
        ),
    ],
)
def test_the_strategies_are_not_harmless(name, strategy, condition, least):
    examples = max(100, round(6 / least))  # the rarer, the more are needed to see it at all
    assert share(strategy, condition, examples) >= least, name


def test_the_former_name_of_max_punctuations_works_and_warns():
    with pytest.warns(DeprecationWarning, match="most= is now max_punctuations=") as warned:
        none = testing.punctuated([Cti(1)], {"a": [0]}, most=0)
    assert warned[0].filename == __file__
    assert find(none, lambda _: True) == [Cti(1)]
