"""Will it finish? What the analysis reports about a plan, and that the engine behaves accordingly."""

from datetime import datetime
from functools import partial

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan.catalogue import few

import cedr
from cedr.api import source_of_keys
from cedr.plan.analysis.warning import warn_of_findings
from cedr.plan.explain import finding_lines
from cedr.plan.nodes import Join, Project
from cedr.plan.nodes.level import Level
from cedr.runtime.local import LocalRun
from cedr.temporal import CedrWarning

SCHEMA = {"k": pl.UInt32, "g": pl.String, "v": pl.Int64}
ENDLESS = {"duration": "inf"}
PUNCTUATED = {"punctuation": "done", "promises": ["k"]}


def a(**options):
    return source_of_keys("a", SCHEMA, vs="ts", **options)


def b(**options):
    return source_of_keys("b", SCHEMA, vs="ts", **options)


def by_k(stream):
    return stream.sliding("60s").group_by("k").agg(n=cedr.count())


def by_g(stream):
    return stream.sliding("60s").group_by("g").agg(n=cedr.count())


SILENT = (
    'source \'a\' makes no promise about progress; declare it with delay="10s", or with cti="column" if its rows carry '
    "progress, or with punctuations about k"
)
WINDOWS = "lifetimes that end, as windows give them"

GOLDEN = {
    "strong without any promise": (
        by_k(a()).with_consistency("strong"),
        [
            "Align ordered, block ∞: emits only at end of stream; state is unbounded",
            "Aggregate by k: n=count() (perfect): emits only at end of stream; state is unbounded",
            f"missing: {SILENT}",
        ],
    ),
    "middle without any promise": (
        by_k(a()),
        [
            "Aggregate by k: n=count() (perfect): emits on later events; state is unbounded",
            f"missing: {SILENT}",
        ],
    ),
    "a delay": (
        by_k(a(delay=5)).with_consistency("strong"),
        [
            "Align ordered, block ∞: emits on CTIs; state is bounded by CTIs",
            "Aggregate by k: n=count() (perfect): emits on CTIs; state is bounded by CTIs and windows of 1m",
        ],
    ),
    "a delay per key": (
        by_k(a(delay=5, progress_by="k")).with_consistency("strong"),
        [
            "Align ordered, block ∞, promises about k: emits on promises about k; state is bounded by promises about k",
            "Aggregate by k: n=count() (perfect): emits on promises about k; "
            "state is bounded by promises about k and windows of 1m",
            "Align ordered, block ∞, promises about k: emits on promises about k; state is bounded by promises about k",
        ],
    ),
    "a delay per key, grouped by another": (
        by_g(a(delay=5, progress_by="k")).with_consistency("strong"),
        [
            "Align ordered, block ∞: emits only at end of stream; state is unbounded",
            "Aggregate by g: n=count() (perfect): emits only at end of stream; state is unbounded",
            "missing: source 'a' reports the progress of each k, but not of all together; declare it with idle, after "
            "which a silent k is given up, or with punctuations about g",
        ],
    ),
    "a delay per key, silent keys given up": (
        by_g(a(delay=5, progress_by="k", idle="5m")).with_consistency("strong"),
        [
            "Align ordered, block ∞: emits on CTIs; state is bounded by CTIs",
            "Aggregate by g: n=count() (perfect): emits on CTIs; state is bounded by CTIs and windows of 1m",
        ],
    ),
    "distinct of events without end": (
        a(delay=5, **ENDLESS).distinct(),
        [
            "Distinct (perfect): emits only at end of stream; state is unbounded",
            "missing: punctuations of source 'a' about one or more of k, g, v that state when a value is done; "
            f'or {WINDOWS}; to emit, with_latency("ordered") is enough',
        ],
    ),
    "distinct of events without end, punctuated": (
        a(**PUNCTUATED, **ENDLESS).distinct(),
        ["Distinct (perfect): emits on promises about k; state is bounded by promises about k"],
    ),
    "punctuations about columns nobody named": (
        a(punctuation="done", **ENDLESS).distinct(),
        [
            "Distinct (perfect): emits only at end of stream; state is unbounded",
            "missing: punctuations of source 'a' about one or more of k, g, v (if its punctuations are, declare them "
            f"with promises=[...]) that state when a value is done; or {WINDOWS}; to emit, "
            'with_latency("ordered") is enough',
        ],
    ),
    "join of streams without end": (
        a(delay=5, **ENDLESS).join(b(delay=5, **PUNCTUATED, **ENDLESS), on="k"),
        [
            "Join inner on k: emits at once; state is unbounded",
            f"missing: punctuations of source 'a' about k that state when a value is done; or {WINDOWS}",
        ],
    ),
    "join of a stream without end and one with windows": (
        a(delay=5, **ENDLESS).join(b(delay=5).sliding("1h"), on="k"),
        [
            "Join inner on k: emits at once; state is unbounded",
            f"missing: punctuations of source 'b' about k that state when a value is done; or {WINDOWS}",
        ],
    ),
    "left join": (
        a(delay=5).join(b(delay=5, **ENDLESS), on="k", how="left"),
        [
            "Join left on k (perfect): emits on later events; state is unbounded",
            "missing: punctuations of source 'a' about k and punctuations of source 'b' about k that state when a "
            f"value is done; or {WINDOWS}",
        ],
    ),
    "sort by a column nothing is promised about": (
        a(delay=5, **PUNCTUATED).sort("v"),
        [
            "Sort by v asc: emits only at end of stream; state is unbounded",
            "missing: punctuations of source 'a' about v that state when a value and all before it are done",
        ],
    ),
    "sort by the punctuated column": (
        a(delay=5, **PUNCTUATED).sort("k", "v").with_consistency("strong"),
        [
            "Align ordered, block ∞, promises about k: emits on CTIs or on promises about k; "
            "state is bounded by CTIs or promises about k",
            "Sort by k asc, v asc: emits on promises about k; state is bounded by promises about k",
        ],
    ),
    "per key progress never ends a key": (
        a(delay=5, progress_by="k", **ENDLESS).group_by("k").agg(n=cedr.count()),
        [
            "Aggregate by k: n=count() (perfect): emits on later events; state is unbounded",
            f"missing: punctuations of source 'a' about k that state when a value is done; or {WINDOWS}",
        ],
    ),
    "remember": (
        a(ve="end", ve_new="moved").sliding(5).distinct().with_consistency(remember="5s"),
        [
            "Finalize, remember 5s: emits at once; state is bounded by remembering 5s and windows of 5",
            "Distinct (perfect): emits on later events; state is bounded by CTIs and windows of 5",
        ],
    ),
    "block": (
        by_k(a(delay=5)).with_consistency(block="3s"),
        [
            "Align ordered, block 3s: emits on a block of 3s; state is bounded by a block of 3s",
            "Aggregate by k: n=count() (perfect): emits on later events; state is bounded by CTIs and windows of 1m",
        ],
    ),
    "the sum of all": (
        a(delay=5, **ENDLESS).agg(v=cedr.sum("v")),
        ["Aggregate: v=sum(v) (perfect): emits on later events; state is bounded by CTIs and one group"],
    ),
    "session": (
        a(delay=5, progress_by="k").session("5s", by="k"),
        ["Session 5s by k: emits at once; state is bounded by promises about k and a timeout of 5s"],
    ),
    "no state": (a().where("v > 1"), ["nothing waits and nothing is kept"]),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_findings(name):
    query, lines = GOLDEN[name]
    assert finding_lines(query.findings()) == [f"  {line}" for line in lines]


PATTERNS = {
    "a scope": ("UNLESS(A x, B y, 5 minutes)", True, "CTIs and scopes of 5m"),
    "no negation": ("SEQUENCE(A x, B y, 12 hours)", True, "CTIs and scopes of 12h"),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(name):
    text, unblocked, bounded = PATTERNS[name]
    feed = cedr.source("feed", {"kind": str, "k": int}, vs="ts", types="kind", delay="1s")
    (found,) = cedr.query(f"EVENT q WHEN {text} WHERE CorrelationKey(k, EQUAL) OUTPUT x.k AS k", feed).findings()
    assert found.unblocked == unblocked
    assert found.bounded_by == (bounded,)
    per = cedr.source(
        "feed", {"kind": str, "k": int}, vs="ts", types="kind", delay="1s", progress=cedr.Progress(by="k")
    )
    query = cedr.query(f"EVENT q WHEN {text} WHERE CorrelationKey(k, EQUAL) OUTPUT x.k AS k", per)
    *_, found, _ = query.with_consistency("strong").findings()
    assert found.unblocked_by == ("promises about k",)


def test_one_warning_for_each_thing_that_is_missing():
    with pytest.warns(CedrWarning) as warned:
        warn_of_findings(Level(by_k(a()).with_consistency("strong").plan))
    (warning,) = warned
    assert str(warning.message).startswith(SILENT + ". Now: Align")
    assert "Aggregate by k: n=count() (perfect): emits only at end of stream; state is unbounded" in str(
        warning.message
    )
    warn_of_findings(Level(by_k(a(delay=5)).plan))


def test_updates_of_what_may_never_end_warn():
    table = pl.DataFrame({"ts": [datetime(2024, 7, 1)], "k": [1], "g": ["x"], "v": [1]})
    with pytest.warns(CedrWarning, match="makes no promise about progress"):
        by_k(a()).updates(table for _ in range(1))
    by_k(a()).updates(iter([table]))
    by_k(a()).run(table)


# --- the engine does what was found ----------------------------------------------------------------------------------

#  Piece i has events in [10 i, 10 i + 10) of the keys 2 i, ..., 2 i + 3; so a key has events in two pieces, and is done
#  with the second. With progress per key there are four keys, which stay: what a silent one leaves behind stays, too.
#  Their windows of 4 leave gaps, as a payload that lives on without one is an event without end to what comes after.

PIECES = 12
PROGRESS = {
    "silent": {},
    "delay": {"delay": 5},
    "per": {"delay": 5, "progress_by": "k"},
    "punctuated": PUNCTUATED,
    "delay, punctuated": {"delay": 5, **PUNCTUATED},
}

STEPS = {
    "aggregate": lambda s, t: s.group_by("k").agg(v=cedr.sum("v")),
    "aggregate in windows": lambda s, t: s.sliding(4).group_by("k").agg(v=cedr.max("v")),
    "top_k": lambda s, t: s.group_by("k").top_k(1, "v"),
    "distinct": lambda s, t: s.distinct(),
    "coalesce": lambda s, t: s.select("k", v=pl.lit(1, pl.Int64)).coalesce(),
    "session": lambda s, t: s.session(5, by="k"),
    "where": lambda s, t: s.where("v > 0"),
    "join": lambda s, t: s.join(t, on="k").select("k", "v"),
    "semi join": lambda s, t: s.join(t, on="k", how="semi"),
    "union": lambda s, t: s.select("k", "v").union(t.select("k", "v")),
    "difference": lambda s, t: s.select("k", "v").difference(t.select("k", v=pl.col("v") + 1)),
    "intersect": lambda s, t: s.select("k", "v").intersect(t.select("k", "v")),
    "clip": lambda s, t: s.clip(t, on="k"),
    "sort": lambda s, t: s.sort("k"),
}


def piece(i: int, per: bool, punctuated: bool) -> pl.DataFrame:
    keys = [j % 4 if per else 2 * i + j % 4 for j in range(8)]
    rows = [(10 * i + j, k, f"g{k % 3}", 1 + j // 4, False) for j, k in enumerate(keys)]
    if punctuated:
        rows += [(None, k, None, None, True) for k in (2 * i, 2 * i + 1)]
    return pl.DataFrame(rows, schema={"ts": pl.Int64, **SCHEMA, "done": pl.Boolean}, orient="row")


def state_and_output(query, progress: str) -> tuple[list[int], int]:
    """The rows in state after each piece, and how many rows came out."""
    run = LocalRun(query.fragment())
    state, out = [], 0
    for i in range(PIECES):
        given = piece(i, "progress_by" in PROGRESS[progress], "promises" in PROGRESS[progress])
        out += sum(map(len, run.steps(dict.fromkeys(run.ingests, given), close=False)))
        state.append(sum(operator.metrics.state_rows for operator in run.engine.operators))
    assert not run.late
    return state, out


def check(query, progress: str, exact: bool = True, emits: bool = True) -> None:
    """What is found to be so is so; `exact`: what is not, is not. `emits`: there are results to emit."""
    findings = query.findings()
    state, out = state_and_output(query, progress)
    half, last = max(state[3:6]), max(state[-3:])
    if all(f.bounded for f in findings):
        assert last <= 1.25 * half + 4, (state, findings)
    elif exact and progress != "per":
        assert last >= 1.3 * half, (state, findings)
    if all(f.unblocked for f in findings):
        assert out or not emits, findings
    elif exact:
        assert not out, findings


def sources(progress: str, endless: bool):
    options = {**PROGRESS[progress], "duration": "inf" if endless else 3}
    return a(**options), b(**options)


@pytest.mark.parametrize("level", ["middle", "strong"])
@pytest.mark.parametrize("step", STEPS)
def test_the_engine_does_what_is_found(step, level):
    for progress in ("silent", "delay", "per", "punctuated"):
        for endless in (False, True):
            query = STEPS[step](*sources(progress, endless)).with_consistency(level)
            check(query, progress)


@few
@given(st.data())
def test_claims_hold_of_random_plans(data):
    progress, endless = data.draw(st.sampled_from(sorted(PROGRESS))), data.draw(st.booleans())
    stream, other = sources(progress, endless)
    steps = data.draw(st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=3))
    for step in steps:
        stream = STEPS[step](stream, other)
    level = data.draw(st.sampled_from(["middle", "strong"]))
    latency = data.draw(st.sampled_from(["perfect", "ordered", "eager"]))
    may_be_empty = {"difference", "intersect", "join", "semi join"} & set(steps)
    check(stream.with_consistency(level).with_latency(latency), progress, exact=False, emits=not may_be_empty)


def test_shared_inputs_are_looked_at_once(monkeypatch):
    # each level uses the one below twice: 2 ** 40 paths lead to the source
    stream = cedr.source("a", {"m": int, "v": int}, vs="ts", ve="te")
    for _ in range(40):
        stream = stream.select("m", "v").join(stream.select("m"), on="m")
    looked_at = []
    for kind in (Join, Project):
        monkeypatch.setattr(kind, "promised_columns", property(partial(counted, kind.promised_columns, looked_at)))
    assert len(stream.findings()) == 40
    assert "source 'a'" in stream.explain()
    assert looked_at


def counted(columns, looked_at, node, most=100_000):
    looked_at.append(node)
    assert len(looked_at) < most
    return columns.fget(node)
