"""Loops in loops: where the inner one reads other streams only, and where one loop does the work of two."""

import polars as pl
from graph_streams import GRAPHS, WEIGHED, AsPorts, weighed
from hypothesis import given, settings
from oracle_check import check_against_oracle, runs

from cedr import graphs
from cedr import reference as ref
from cedr.reference.fixed_point import fixed_point, reachable
from cedr.temporal import History, Row

few = settings(max_examples=max(settings.default.max_examples // 2, 1))
LONG = pl.col("length") > 1


@few
@given(run=runs(WEIGHED, max_size=5))
def test_an_inner_loop_over_other_streams(run):
    """One short edge, then any way over long ones, again and again."""
    edges = weighed()
    ways = graphs.reachability(edges.where(LONG).select("start", "end"))
    query = (
        edges.where(~LONG)
        .select("start", "end")
        .iterate(lambda loop: loop.join(ways, left_on="end", right_on="start").select("start", end="end_right"))
    )

    def oracle(h: History) -> History:
        ways = reachable(ref.select(h, lambda p: p.length > 1))
        seed = ref.project(ref.select(h, lambda p: p.length <= 1), lambda p: p.pick("start", "end"))
        return fixed_point(lambda loop, over: hops(loop, over), seed, ways)

    check_against_oracle(lambda: AsPorts(query), oracle, run[0], [GRAPHS], run[1])


def hops(loop: History, edges: History) -> History:
    return ref.inner_join(loop, edges, lambda p, q: p.end == q.start, lambda p, q: Row(start=p.start, end=q.end))


@few
@given(run=runs(WEIGHED, max_size=5))
def test_one_loop_that_does_the_work_of_two_in_each_other(run):
    """Nodes that are entered over long edges, from 0 on; between, any way over short ones, in a loop of its own."""
    edges = weighed().select(_start="start", _end="end", _long=LONG)
    begin = weighed().where(pl.col("start") == 0).select(inner=pl.lit(False), start="start", end="start")
    both = begin.iterate(
        lambda loop: (
            loop.where(~pl.col("inner"))
            .with_columns(inner=pl.lit(True))
            .union(
                loop.where(pl.col("inner"))
                .join(edges.where(~pl.col("_long")), left_on="end", right_on="_start")
                .select("inner", "start", end="_end")
            )
            .union(
                loop.where(pl.col("inner"))
                .join(edges.where(pl.col("_long")), left_on="end", right_on="_start")
                .select(inner=pl.lit(False), start="_end", end="_end")
            )
        )
    )
    query = both.where(~pl.col("inner")).select(node="start")

    def outer(entered: History, h: History) -> History:
        short, long = (ref.select(h, lambda p, side=side: (p.length > 1) == side) for side in (False, True))
        ways = fixed_point(hops, ref.project(entered, lambda p: Row(start=p.node, end=p.node)), short)
        return ref.project(hops(ways, long), lambda p: Row(node=p.end))

    def oracle(h: History) -> History:
        seed = ref.project(ref.select(h, lambda p: p.start == 0), lambda p: Row(node=p.start))
        return fixed_point(outer, seed, h)

    check_against_oracle(lambda: AsPorts(query), oracle, run[0], [GRAPHS], run[1])
