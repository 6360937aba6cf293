"""Random streams for the ports of a random pattern, and the pattern operator against the oracle on them."""

from dataclasses import replace

from hypothesis import strategies as st
from oracle_check import arrivals_of, check_against_oracle
from random_patterns import KINDS, SCHEMA, payloads

from cedr import testing
from cedr.physical import operator_of
from cedr.temporal import History

LATENCIES = ["perfect", "ordered", "eager"]


@st.composite
def pattern_runs(draw, query, sizes=(5, 9), about=None, **options):
    """Streams for all ports of a query, sliced, with the places of snapshot and restore.

    With `about`, columns and their values, there are punctuations about them.
    """
    kinds = KINDS if query.ports > 1 else [KINDS]
    least, most = (-(-size // query.ports) for size in sizes)
    streams = []
    for kind in kinds:
        events = testing.events(payloads(kind), max_time=9)
        history = History(draw(st.lists(events, min_size=least, max_size=most)))
        stream = draw(testing.streams_of(history, payloads=payloads(kind), closed=True, **options))
        streams.append(draw(testing.punctuated(stream, about)) if about else stream)
    arrivals = draw(arrivals_of(streams))
    return arrivals, draw(st.sets(st.integers(0, max(len(arrivals) - 1, 0)), max_size=2))


def made(query, latency):
    return lambda: operator_of(replace(query.node, latency=latency), [])


def check(query, latency, run):
    arrivals, restore_at = run
    return check_against_oracle(made(query, latency), query.oracle, arrivals, [SCHEMA] * query.ports, restore_at)
