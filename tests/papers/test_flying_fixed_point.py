"""On-the-fly Progress Detection in Iterative Stream Queries: its examples, step by step, and its theorem."""

import polars as pl
import pytest
from graph_streams import EDGES, LINKS, AsPorts, links
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import run, runs

from cedr import api, graphs, testing
from cedr.columnar.chunk import chunk_of
from cedr.operators.iterate.ffp import HighWaterMark, Hybrid, Probing
from cedr.reference.fixed_point import reachable
from cedr.stream import Stream
from cedr.temporal import INF, Adjust, Cti, Event, History, Insert, Row, canonical, closed_up_to
from cedr.temporal.time import MIN

# --- section 2: reachability, time by time -------------------------------------------------------------------------
#
#   n1 --3--> n2        links and the times from which they are there; n2 and n3 are sources from time 1 on
#   ^         |
#   2         3
#   |         v
#   +------- n3 --4--> n4

LINK = {"x": pl.Int64, "y": pl.Int64}
SOURCE = {"n": pl.Int64}


def figure_1() -> Stream:
    """`visited` is the bit vector, n1 the highest of four bits."""
    sources, found = api.source("sources", SOURCE), api.source("links", LINK)
    bit = lambda column: pl.lit(2).pow(4 - pl.col(column)).cast(pl.Int64)  # noqa: E731
    seed = sources.select(start="n", end="n", visited=bit("n"))
    return seed.iterate(
        lambda loop: (
            loop.join(found, left_on="end", right_on="x")
            .where((pl.col("visited") // bit("y")) % 2 == 0)
            .select("start", end="y", visited=pl.col("visited") + bit("y"))
        )
    )


def path(start: int, end: int, visited: str, vs: int, ve: int = INF) -> Event:
    return Event(vs, ve, Row(start=start, end=end, visited=int(visited, 2)))


STEPS = [
    (1, "sources", [Row(n=2), Row(n=3)], [path(2, 2, "0100", 1), path(3, 3, "0010", 1)]),
    (2, "links", [Row(x=3, y=1)], [path(3, 1, "1010", 2)]),
    (
        3,
        "links",
        [Row(x=1, y=2), Row(x=2, y=3)],
        [path(3, 2, "1110", 3), path(2, 3, "0110", 3), path(2, 1, "1110", 3)],
    ),
    (4, "links", [Row(x=3, y=4)], [path(3, 4, "0011", 4), path(2, 4, "0111", 4)]),
]


def test_the_reachability_example_time_by_time():
    engine = figure_1().engine()
    for time, source, rows, expected in STEPS:
        schema = SOURCE if source == "sources" else LINK
        out = engine.push(source, chunk_of([Insert(time, INF, p) for p in rows], schema))
        testing.assert_same(canonical(out.elements()), History(expected))


def test_the_same_result_when_inputs_do_not_wait_for_the_fixed_point():
    arrivals = [(source, time, p) for time, source, rows, _ in STEPS for p in rows]
    for order in (arrivals, arrivals[::-1]):
        engine = figure_1().engine()
        out = []
        for source, time, p in order:
            out += engine.push(
                source, chunk_of([Insert(time, INF, p)], SOURCE if source == "sources" else LINK)
            ).elements()
        testing.assert_same(canonical(out), History(e for *_, found in STEPS for e in found))


def test_lifetimes_intersect():
    """n3 is a source in [1, 6), link (n3, n1) lives in [2, 8) and (n1, n2) in [3, 10): n2 is reached in [3, 6)."""
    engine = figure_1().engine()
    engine.push("sources", chunk_of([Insert(1, 6, Row(n=3))], SOURCE))
    edges = [Insert(2, 8, Row(x=3, y=1)), Insert(3, 10, Row(x=1, y=2))]
    out = canonical(engine.push("links", chunk_of(edges, LINK)).elements())
    assert path(3, 2, "1110", 3, 6) in list(out)


def test_a_retraction_ripples_round_the_loop():
    """At time 5 the link (n3, n1) is retracted: what was derived from it ends as well."""
    engine = figure_1().engine()
    out = []
    for time, source, rows, _ in STEPS[:3]:
        schema = SOURCE if source == "sources" else LINK
        out += engine.push(source, chunk_of([Insert(time, INF, p) for p in rows], schema)).elements()
    out += engine.push("links", chunk_of([Adjust(2, INF, 5, Row(x=3, y=1))], LINK)).elements()
    found = list(canonical(out))
    assert path(3, 1, "1010", 2, 5) in found
    assert path(3, 2, "1110", 3, 5) in found
    assert path(2, 3, "0110", 3) in found


# --- 3.5: High-Water-Mark and Probing, as printed ------------------------------------------------------------------
#
# The paper writes "at t" for what holds up to and including t; here that is a CTI of t + 1.


def test_high_water_mark_lodges_and_goes_round_again():
    ffp = HighWaterMark()
    ffp.see(3, 4)  # (3, n3, n2, 1110) has come: everything up to 3 is the guess
    ffp.leave()
    assert (ffp.flying, ffp.speculation) == (True, 4)
    ffp.see(3, 4)  # (3, n2, n3, 0110): not converged
    ffp.external = 3
    assert ffp.lodged
    assert not ffp.back()
    ffp.external = 5
    assert not ffp.back()  # it is back, and goes round once more
    assert ffp.definite == MIN
    ffp.leave()
    ffp.see(4, 5)  # only events with time 4 circulate
    assert ffp.back()
    assert ffp.definite == 4
    ffp.leave()
    assert ffp.speculation == 5  # it starts over with hwm = 4


def test_probing_is_lowered_by_the_inputs():
    ffp = Probing()
    ffp.leave()
    ffp.see(3, 4)
    ffp.external = 3  # Union would lower it to 5, Join to 2: the slowest counts
    assert ffp.back()
    assert ffp.definite == 3
    ffp.leave()
    assert not ffp.back()  # nothing new
    assert ffp.definite_punctuations == 1


def test_hybrid_speculates_only_when_the_inputs_are_ahead():
    ffp = Hybrid()
    ffp.leave()
    assert not ffp.flying
    ffp.external = 7
    ffp.leave()
    assert ffp.flying
    ffp.see(5, 6)
    assert ffp.back()
    assert ffp.definite == 5
    ffp.leave()
    assert ffp.back()
    assert ffp.definite == 7
    ffp.leave()
    assert not ffp.flying


# --- 3.6: Theorem 2.3 ----------------------------------------------------------------------------------------------


@given(run_=runs(LINKS, max_size=6), per_chunk=st.integers(1, 4), progress=st.sampled_from(["probing", "hybrid"]))
def test_theorem_2_3_the_output_is_the_fixed_point_and_progresses_explicitly(run_, per_chunk, progress):
    """S@i = Q*(R@i) at every definite punctuation; and when no more comes but the same progress again and again, what
    the input has promised becomes definite in the output."""
    stream = [e for _, elements in run_[0] for e in elements if e != Cti(INF)]
    reached = closed_up_to(stream)
    promise = [Cti(reached)] if reached > 0 else []
    arrivals = [(0, [e]) for e in stream] + [(0, promise)] * 40
    query = graphs.reachability(links(), progress=progress, iterations_per_chunk=per_chunk)
    out = [e for produced in run(lambda: AsPorts(query), arrivals, [EDGES]) for e in produced]
    expected = reachable(canonical(stream))
    testing.assert_same(canonical(out), expected)
    if reached > 0:
        assert closed_up_to(out) == reached


# --- 5: what the three ways are good and bad at --------------------------------------------------------------------


def pushed(progress: str, slices: list[list]) -> pl.DataFrame:
    engine = graphs.reachability(links(), progress=progress, iterations_per_chunk=8).engine()
    for elements in slices:
        engine.push("a", chunk_of(elements, EDGES))
    return engine.loop_metrics()


def edge(time: int) -> Insert:
    return Insert(time, time + 3, Row(start=time % 3, end=(time + 1) % 3))


def test_iterations_are_counted_under_their_former_name_too():
    found = pushed("hybrid", [[edge(1), Cti(2)]])
    assert found["iterations"][0] > 0
    assert found["turns"].equals(found["iterations"])


def test_in_a_lull_high_water_mark_is_silent_and_the_others_are_not():
    lull = [[edge(1), Cti(2)], *([Cti(t)] for t in range(3, 20))]
    silences = {progress: pushed(progress, lull)["longest_silence"][0] for progress in ("hwm", "probing", "hybrid")}
    assert silences["hwm"] >= 10
    assert silences["probing"] == silences["hybrid"] == 1  # a chunk reaches the loop twice, as seed and as edges


def test_when_nothing_comes_probing_goes_on_speculating_and_hybrid_does_not():
    busy = [[edge(t), Cti(t)] for t in range(1, 10)]
    idle = [*busy, *([[]] * 50)]
    counts = {
        progress: [pushed(progress, s)["speculative_punctuations"][0] for s in (busy, idle)]
        for progress in ("probing", "hybrid")
    }
    assert counts["probing"][1] > 4 * counts["probing"][0]
    assert counts["hybrid"][1] == counts["hybrid"][0]


@pytest.mark.parametrize("ahead", [5, 10])
def test_events_that_come_early_mislead_high_water_mark(ahead):
    early = [[edge(t), edge(t + ahead), Cti(t + 1)] for t in range(1, 40, 2)]
    lags = {progress: pushed(progress, early)["lag"][0] for progress in ("hwm", "hybrid")}
    assert lags["hybrid"] == 0
    assert lags["hwm"] >= 0
    definite = {p: pushed(p, early)["definite_punctuations"][0] for p in ("hwm", "hybrid")}
    assert definite["hwm"] < definite["hybrid"]
