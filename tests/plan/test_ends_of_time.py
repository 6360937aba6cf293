"""Every query near the first and the last chronon: times are cut at the ends of time, and never wrap around.

The same random streams as elsewhere, moved so that windows, scopes and shifts reach beyond an end; and spread, so that
the distance of two starts leaves 64 bits.
"""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_check import check_against_oracle, runs
from plan.catalogue import QUERIES, SCHEMA, AsOperator, Query, a, payloads

from cedr import reference as ref
from cedr.temporal import Adjust, Cti, History, Insert, QueryError, Row
from cedr.temporal.time import INF, MIN

PLACES = {
    "last": lambda t: INF - 45 + t,
    "first": lambda t: MIN + 1 + t,
    "both": lambda t: MIN + 1 + t if t < 10 else INF - 45 + t,
}
"""Streams have times from 0 to 40. From the first to the last chronon chop has too many pieces, and a length does not
fit into the 64 bits of a column. An automaton shows the place before its first event, so that is not MIN."""

LENGTHS = {
    "length * 3": (pl.col("length") * 3, lambda n: n * 3),
    "length // 2 + 1": (pl.col("length") // 2 + 1, lambda n: n // 2 + 1),
    "length + 10": (pl.col("length") + 10, lambda n: n + 10),
    "length * 2**61": (pl.col("length") * 2**61, lambda n: n * 2**61),
    "length / 2 + 1": (pl.col("length") / 2 + 1, lambda n: n // 2 + 1),
    "ve - vs": (pl.col("ve") - pl.col("vs"), lambda n: n),
    "cast": (pl.col("length").cast(pl.Float64) * 2, lambda n: n * 2),
}


def of_length(e, f):
    return Query(
        lambda a: a.alter_lifetime(duration=e, progress=pl.lit(MIN)),
        lambda h: ref.alter_lifetime(h, duration=ref.of_length(f)),
    )


MORE = {
    **{name: of_length(*both) for name, both in LENGTHS.items()},
    "same lifetimes": Query(lambda a: a.alter_lifetime(progress=pl.lit(MIN)), lambda h: h),
    "at most 7": Query(
        lambda a: a.alter_lifetime(duration=pl.col("length").clip(upper_bound=7), progress=pl.lit(MIN)),
        lambda h: ref.alter_lifetime(h, duration=lambda e: min(e.lifetime.length, 7)),
    ),
    "start * 3": Query(
        lambda a: a.alter_lifetime(start=pl.col("vs") * 3, duration=4),
        lambda h: ref.alter_lifetime(h, start=lambda e: e.vs * 3, duration=lambda e: 4),
    ),
    "sliding for ever": Query(lambda a: a.sliding(INF), lambda h: ref.sliding(h, INF)),
    "hopping": Query(lambda a: a.hopping(60, 20, 7), lambda h: ref.hopping(h, 60, 20, 7)),
    "shift": Query(lambda a: a.shift(25), lambda h: ref.shift(h, 25)),
    "shift back": Query(lambda a: a.shift(-25), lambda h: ref.shift(h, -25)),
    "session": Query(lambda a: a.session(15), lambda h: ref.session(h, 15)),
}
ALL = {**QUERIES, **MORE}


def moved(elements, place):
    """The same elements at other times; what is promised about the beginning stays promised."""

    def time(t):
        return t if t == INF else place(t)

    for e in elements:
        match e:
            case Insert(vs, ve, p):
                yield Insert(time(vs), time(ve), p)
            case Adjust(vs, ve, ve_new, p):
                yield Adjust(time(vs), time(ve), time(ve_new), p)
            case Cti(t):
                yield Cti(time(t))
            case _:
                raise TypeError(e)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=max(settings.default.max_examples // 6, 1))
@given(data=st.data())
def test_times_are_cut_at_the_ends_of_time(name, data):
    query = ALL[name]
    where = data.draw(st.sampled_from([p for p in PLACES if p != "both" or name not in ("chop", *LENGTHS)]))
    drawn = runs(payloads, query.ports, max_size=4, infinite=query.infinite, adjusts=query.infinite)
    arrivals, restore_at = data.draw(drawn)
    arrivals = [(port, list(moved(elements, PLACES[where]))) for port, elements in arrivals]
    stream = query.stream().with_latency(data.draw(st.sampled_from(["perfect", "ordered", "eager"])))
    make = lambda: AsOperator(stream)  # noqa: E731
    check_against_oracle(make, query.oracle, arrivals, [SCHEMA] * query.ports, restore_at)


@pytest.mark.parametrize("name", LENGTHS)
def test_an_event_without_end_keeps_none(name):
    found = a(insert_only=True).alter_lifetime(duration=LENGTHS[name][0]).run([Insert(3, INF, Row(m=0, v=0))])
    assert found.history() == History([(3, INF, Row(m=0, v=0))])


@pytest.mark.parametrize(
    ("length", "problem"),
    [
        (pl.col("length") % 7, "has no value for {'vs': 3, 've': inf, 'length': inf}"),
        (10 - pl.col("length"), r"gives \[3, ∞\) the length -9223372036854775808; it must be at least 1"),
        (pl.when(pl.col("vs") > 3).then(pl.col("length")), "has no value for"),
    ],
)
def test_a_length_that_an_endless_event_cannot_have_is_an_error(length, problem):
    stream = a(insert_only=True).alter_lifetime(duration=length)
    with pytest.raises(QueryError, match=problem):
        stream.run([Insert(3, INF, Row(m=0, v=0))])


def test_chop_does_not_try_to_make_more_pieces_than_fit_into_memory():
    with pytest.raises(QueryError, match="would become 4,611,686,018,427,387,904 pieces, more than 100,000,000"):
        a().chop(4).run([Insert(MIN, INF - 1, Row(m=0, v=0))])
