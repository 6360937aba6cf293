"""Each rewrite rule: the plan before and after it as text, and both plans executed on random streams.

The texts are in `golden/`, one file per rule. `CEDR_WRITE_GOLDEN=1 pytest tests/plan/test_rules.py` writes them again.
"""

import os
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import arrivals_of, run
from plan.catalogue import QUERIES, SCHEMA, AsOperator, a, b, diamond, few, payloads

import cedr
from cedr import api, testing
from cedr.plan.node import topological
from cedr.plan.nodes.level import Level
from cedr.plan.optimizer import REQUIRED, RULES, optimize
from cedr.plan.rules.drop_align_and_finalize import drop_align_and_finalize
from cedr.plan.rules.place_consistency import place_consistency
from cedr.plan.tree import tree
from cedr.temporal import canonical

GOLDEN = Path(__file__).parent / "golden"
v, m = pl.col("v"), pl.col("m")


def counts(stream):
    return stream.group_by("m").agg(n=cedr.count(), s=cedr.sum("v"))


CASES = {
    "push_select_below_project": {
        "columns that pass go through": lambda: a().select("m", w=v + 1).where((m == 1) & (pl.col("w") > 2)),
        "a shared project stays": lambda: shared_project(a().select("m", "v")),
    },
    "push_select_below_alter_lifetime": {
        "all the way down": lambda: a().sliding(5).hopping(6, 3).where(v > 1),
        "below a level": lambda: a().with_consistency("strong").where(v > 1),
    },
    "push_select_below_union": {
        "into every input": lambda: a().union(b(), a().sliding(3)).where(v > 1),
        "difference and distinct": lambda: a().difference(b()).distinct().where(v > 1),
    },
    "push_select_below_aggregate": {
        "only what is about the group": lambda: counts(a()).where((m == 1) & (pl.col("n") > 1)),
        "nothing without a group": lambda: a().agg(n=cedr.count()).where(pl.col("n") > 1),
        "top_k and session": lambda: a().group_by("m").top_k(1, by="v").session(4, by="m").where(m == 1),
        "a shared aggregate stays": lambda: diamond(counts(a())),
    },
    "push_select_below_join": {
        "each predicate to its side": lambda: (
            a().join(b().select("m", w="v"), on="m").where((v > 1) & (pl.col("w") < 2) & (v < pl.col("w")))
        ),
        "keys to both sides": lambda: a().join(b(), on="m", how="anti").where(m == 1),
        "left joins keep what is about the right": lambda: (
            a().join(b(), on="m", how="left").where((v > 1) & (pl.col("v_right") > 1))
        ),
        "full joins keep all but keys": lambda: a().join(b(), on="m", how="full").where((v > 1) & (m == 1)),
        "clip": lambda: a().clip(b(), on="m").where((v > 1) & (m == 1)),
    },
    "prune_columns": {
        "before an aggregate": lambda: a().where(v > 1).group_by("m").agg(n=cedr.count()),
        "unread aggregates": lambda: counts(a()).group_by("m").agg(top=cedr.max("n")),
        "unread expressions": lambda: a().select("m", w=v + 1, x=v + 2).group_by("m").agg(x=cedr.sum("x")),
        "both sides of a join": lambda: a().join(b().with_columns(x=v, y=v), on="m", where=v < pl.col("x")).select("m"),
        "members of a union alike": lambda: (
            a().session(5, by="m").union(b(), counts(a()).select("m", v="n")).select("v")
        ),
        "distinct reads all": lambda: a().distinct().select("m").coalesce(),
    },
    "place_consistency": {
        "below the first state": lambda: counts(counts(a().where(v > 1)).select("m", v="n")).with_consistency("strong"),
        "on every path": lambda: a().join(counts(b()), on="m").with_consistency(block=5),
        "at the top without state": lambda: a().where(v > 1).with_consistency("weak"),
        "the last level counts": lambda: (
            counts(a().with_consistency("weak")).with_latency("eager").with_latency("ordered")
        ),
        "two levels": lambda: a().with_consistency("strong").join(b(), on="m"),
        "external CTIs": lambda: counts(a(external_ctis=True).where(v > 1)),
    },
    "drop_align_and_finalize": {
        "no blocking, no Align": lambda: counts(a()),
        "adjusts are checked without state, too": lambda: a().where(v > 1).with_consistency("strong"),
        "in order already": lambda: counts(a(ordered=True)).with_consistency("strong"),
        "the second Align": lambda: counts(a().align(5)).with_consistency(block=3),
        "the second Finalize": lambda: counts(a().finalize(5).where(v > 1)),
    },
    "fuse_stateless": {
        "a whole run": lambda: a().where(v > 1).sliding(5).select("m").tumbling(4),
        "up to what cannot be fused": lambda: a().where(v > 1).sliding(4).deletes().where(m == 1).select("m"),
        "shared nodes stay": lambda: shared_project(a().where(v > 1).select("m", "v")),
    },
}

PLACED = ("drop_align_and_finalize", "fuse_stateless")
"""Rules that are about plans whose consistency is placed."""


def shared_project(stream):
    return stream.where(m == 1).union(stream)


def before_and_after(rule, stream):
    plan = Level(stream.plan)
    if rule.__name__ in PLACED:
        plan = place_consistency(plan)
    return plan, optimize(plan, (rule,)).plan


def text_of(rule):
    parts = []
    for title, build in CASES[rule.__name__].items():
        before, after = before_and_after(rule, build())
        parts.append(
            "\n".join([title, *tree(before), "  ->", *(tree(after) if after is not before else ["  the same"])])
        )
    return "\n\n".join(parts) + "\n"


def test_every_rule_has_cases():
    assert list(CASES) == [rule.__name__ for rule in RULES]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_golden(rule):
    path = GOLDEN / f"{rule.__name__}.txt"
    if os.environ.get("CEDR_WRITE_GOLDEN"):
        path.write_text(text_of(rule))
    assert text_of(rule) == path.read_text()


def test_where_nothing_is_adjusted_or_kept_a_guard_is_enough():
    _, after = before_and_after(drop_align_and_finalize, a(insert_only=True).where(v > 1))
    assert [line.split()[0] for line in tree(after)] == ["Guard", "Select", "Source"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@few
@given(data=st.data())
def test_same_answer(rule, data):
    """Closed streams, any slicing: with and without the rule the canonical results are equal."""
    build = data.draw(st.sampled_from(list(CASES[rule.__name__].values())))
    ordered = "ordered=True" in str(build().plan)
    streams = [data.draw(testing.streams(payloads, max_size=5, closed=True, ordered=ordered)) for _ in "ab"]
    arrivals = data.draw(arrivals_of(streams))
    needed = {port for port, name in enumerate("ab") if name in build().fragment().sources}
    arrivals = [arrival for arrival in arrivals if arrival[0] in needed]
    with_rule = (*REQUIRED, rule) if rule not in REQUIRED else REQUIRED
    if rule.__name__ not in PLACED:
        with_rule = with_rule[::-1]
    testing.assert_same(answer(build, arrivals, with_rule), answer(build, arrivals, REQUIRED))


def answer(build, arrivals, rules):
    outputs = run(lambda: AsOperator(build(), rules), arrivals, [SCHEMA] * 2)
    return canonical([e for output in outputs for e in output])


@pytest.mark.parametrize("name", QUERIES)
def test_a_second_optimisation_changes_nothing(name):
    plan = optimize(Level(QUERIES[name].stream().plan)).plan
    assert optimize(plan).plan is plan


@pytest.mark.parametrize("name", QUERIES)
def test_any_query_may_be_a_member_of_a_narrowed_union(name):
    stream = QUERIES[name].stream()
    other = api.source("other", stream.schema)
    for column in stream.schema:
        for union in (stream.union(other), other.union(stream)):
            plan = optimize(union.select(column).plan).plan
            assert all(node.schema for node in topological(plan))  # members of a union that differ raise
            assert list(plan.schema) == [column]
        assert optimize(stream.union(other).agg(n=cedr.count()).plan).plan.schema["n"] == pl.Int64
