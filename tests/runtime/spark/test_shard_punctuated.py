"""Promises in shards: they reach every shard and stage, and results they settle are emitted in the same micro-batch."""

from collections import Counter
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan.catalogue import SCHEMA
from runtime.spark.cluster import Cluster, history
from runtime.spark.tables import TIMES, parts

import cedr
from cedr import reference as ref
from cedr.api import source_of_keys
from cedr.columnar.promises import PromiseIndex, point_promises
from cedr.runtime.spark.driver.late_files import read_late
from cedr.runtime.spark.shard.upstream import Upstream
from cedr.storage.folder import Folder
from cedr.temporal import Adjust, Cti, Insert, Row, canonical
from cedr.temporal.punctuation import Punctuation
from cedr.temporal.time import INF, MIN
from cedr.testing import assert_same, punctuated, rows, slicings, streams

very_few = settings(max_examples=settings.default.max_examples // 10)
"""Each writes and reads hundreds of files."""

VALUES = {"m": [0, 1, 2], "v": [0, 1]}
payloads = rows(m=st.sampled_from(VALUES["m"]), v=st.sampled_from(VALUES["v"]))
COLUMNS = {"vs": "vs", "ve": "ve", "ve_new": "ve_new", "cti": "cti", "punctuation": "done"}


def counted(h):
    return ref.aggregate(h, ("m",), n=ref.count())


def by_both(a):
    """Rows that are counted by m and v, and these by each of the two: one of them in a second stage."""
    counts = a.group_by("m", "v").agg(n=cedr.count())
    of_m = counts.group_by("m").agg(n=cedr.sum("n")).select(g="m", n="n")
    return of_m.union(counts.group_by("v").agg(n=cedr.max("n")).select(g="v", n="n"))


def counted_by_both(h):
    counts = ref.aggregate(h, ("m", "v"), n=ref.count())
    of_m, of_v = ref.aggregate(counts, ("m",), n=ref.sum_("n")), ref.aggregate(counts, ("v",), n=ref.max_("n"))
    return ref.union(
        ref.project(of_m, lambda p: Row(g=p.m, n=p.n)),
        ref.project(of_v, lambda p: Row(g=p.v, n=p.n)),
    )


def table_of(elements) -> pl.DataFrame:
    """One row per element; closing is the end of the stream."""
    found = []
    for e in elements:
        match e:
            case Insert(vs, ve, p):
                found.append({"vs": vs, "ve": ve, **p})
            case Adjust(vs, ve, ve_new, p):
                found.append({"vs": vs, "ve": ve, "ve_new": ve_new, **p})
            case Cti(t) if t != INF:
                found.append({"cti": t})
            case Punctuation():
                constants = {name: pattern.value for name, pattern in e.patterns.items()}
                found.append({"vs": None if e.before == INF else e.before, "done": True, **constants})
    return pl.DataFrame(found, schema={**TIMES, "done": pl.Boolean, **SCHEMA})


def source(name="a", **options):
    return source_of_keys(name, SCHEMA, **COLUMNS, promises=["m"], **options)


@st.composite
def streams_in_batches(draw, ports: int = 1, **options):
    """Micro-batches of the sources, and the whole streams."""
    inputs = {}
    for name in ("a", "b")[:ports]:
        stream = draw(streams(payloads, closed=True, **options))[:-1]
        inputs[name] = draw(punctuated(stream, VALUES, ranges=False))
    cut = {name: draw(slicings(stream)) for name, stream in inputs.items()}
    number = max(map(len, cut.values()))
    return inputs, [{name: pieces[i] if i < len(pieces) else [] for name, pieces in cut.items()} for i in range(number)]


QUERIES = {
    "rows": (lambda a: a, lambda h: h),
    "keyed": (lambda a: a.group_by("m").agg(n=cedr.count()), counted),
    "keyed, strong": (lambda a: a.group_by("m").agg(n=cedr.count()).with_consistency("strong"), counted),
    "two stages": (lambda a: by_both(a), lambda h: counted_by_both(h)),
    "union": (
        lambda a, b: a.union(b).group_by("m").agg(n=cedr.count()).with_consistency("strong"),
        lambda h, g: counted(ref.union(h, g)),
    ),
}


@pytest.mark.parametrize("name", QUERIES)
@very_few
@given(data=st.data(), shards=st.integers(1, 3))
def test_the_answer_in_shards_is_the_oracles(name, data, shards):
    build, oracle = QUERIES[name]
    ports = build.__code__.co_argcount
    inputs, batches = data.draw(streams_in_batches(ports))
    stream = build(*(source(port) for port in ("a", "b")[:ports]))
    places = st.sets(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=2)
    with TemporaryDirectory() as folder:
        cluster, changes = Cluster(stream, folder, shards), []
        for number, pieces in enumerate([*batches, None]):
            if pieces is None:
                packets = cluster.closing()
            else:
                packets = cluster.packets(number, {s: data.draw(parts(table_of(p))) for s, p in pieces.items()})
            changes.append(cluster.run(number, packets, data.draw(places)))
        late = read_late(Folder(cluster.job.late))
        assert late.height == 0, late["message"].to_list()
    assert_same(history(changes, stream.schema), oracle(*(canonical(t) for t in inputs.values())))


@pytest.mark.parametrize("name", ["rows", "keyed"])
@very_few
@given(data=st.data(), shards=st.integers(1, 3))
def test_after_each_micro_batch_shards_have_emitted_what_one_engine_has(name, data, shards):
    # Strong, as an engine that may speculate takes rows for progress that another shard does not see. A second stage
    # may get less progress than an operator in between, and emit the same a little later. Shards may emit more: in one
    # engine a result that is still open holds back later ones, in shards only those of its own.
    stream = QUERIES[name][0](source()).with_consistency("strong")
    _, batches = data.draw(streams_in_batches())
    tables = [t for t in (table_of(pieces["a"]) for pieces in batches) if t.height]
    local = list(stream.updates(iter(tables), close=False))
    with TemporaryDirectory() as folder:
        cluster, changes = Cluster(stream, folder, shards), []
        for number, (table, expected) in enumerate(zip(tables, local, strict=True)):
            changes.append(cluster.run(number, cluster.packets(number, {"a": [table]})))
            assert not Counter(expected.history()) - Counter(history(changes, stream.schema))


def test_the_progress_of_each_key_reaches_all_shards():
    keyed = cedr.source("a", {"k": str, "v": int}, vs="ts", progress=cedr.Progress(by="k"), delay=0)
    query = keyed.tumbling(10).group_by("k").agg(n=cedr.count()).with_consistency("strong")
    batches = [
        pl.DataFrame({"ts": [1, 2, 3, 4], "k": ["a", "b", "c", "b"], "v": [1, 2, 3, 4]}),
        pl.DataFrame({"ts": [100, 12], "k": ["a", "b"], "v": [1, 2]}),  # a is far ahead, c silent
        pl.DataFrame({"ts": [25], "k": ["b"], "v": [2]}),
    ]
    assert in_batches(query, batches) == [
        [],
        [(0, "a", 1), (0, "b", 2)],
        [(10, "b", 1)],
        [(0, "c", 1), (20, "b", 1), (100, "a", 1)],
    ]


def test_promises_go_on_to_the_next_stage():
    # the groups of both columns with the value 0 are over; that of m is in the second stage
    batches = [
        table_of([Insert(1, 5, Row(m=0, v=1)), Insert(2, 6, Row(m=1, v=0)), Insert(3, 7, Row(m=2, v=2))]),
        table_of([Punctuation({"m": 0}), Punctuation({"v": 0})]),
    ]
    assert in_batches(by_both(source()), batches) == [
        [],
        [(1, 0, 1), (2, 0, 1)],
        [(1, 1, 1), (2, 1, 1), (3, 2, 1), (3, 2, 1)],
    ]


def in_batches(query, tables):
    """What three shards emit after each micro-batch and at the end; each is tried twice, and shards are lost."""
    changes = []
    with TemporaryDirectory() as folder:
        cluster = Cluster(query, folder, 3)
        for number, table in enumerate([*tables, None]):
            for crashes in ((), {(1, 0), (2, 1)}):
                packets = cluster.closing() if table is None else cluster.packets(number, {"a": [table]})
                change = cluster.run(number, packets, crashes).drop("_ve").sort(pl.all())
                assert not crashes or change.rows() == changes[-1]
                changes += [] if crashes else [change.rows()]
        assert read_late(Folder(cluster.job.late)).height == 0
    return [[(vs, *values) for vs, n, *values in rows_ for _ in range(n)] for rows_ in changes]


# --- several shards before a stage ---------------------------------------------------------------------------------


def keys(*pairs):
    """A promise about each key."""
    return point_promises(pl.DataFrame({"k": [k for k, _ in pairs]}), np.array([t for _, t in pairs]))


def taken_promises(upstream):
    return sorted(str(p) for p in upstream.take_promises())


def test_only_what_all_shards_promise_holds():
    upstream = Upstream(2)
    upstream.update(0, MIN, keys(("a", INF), ("b", 5)))
    assert (taken_promises(upstream), upstream.cti) == ([], MIN), "nothing is known of the other"
    upstream.update(1, MIN, keys(("a", 3), ("c", 9)))
    assert taken_promises(upstream) == ["no more k=a before 3"]
    upstream.update(0, 2, keys())
    assert (taken_promises(upstream), upstream.cti) == (["no more k=c before 2"], MIN), (
        "all about a was promised before"
    )
    upstream.update(1, 4, keys(("a", INF)))
    assert (taken_promises(upstream), upstream.cti) == (["no more k=a", "no more k=b before 4"], 2)
    upstream.update(1, 7, keys())
    assert taken_promises(upstream) == ["no more k=b before 5"]
    upstream.update(0, 9, keys())
    assert taken_promises(upstream) == ["no more k=c before 9"]
    assert not any(map(len, upstream.waiting.values())), "both have promised all"


steps = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.dictionaries(st.sampled_from("abc"), st.integers(0, 9))),
    max_size=9,
)


@given(steps, st.integers(0, 9))
def test_shards_that_report_in_any_order(reports, restart):
    everyone = pl.DataFrame({"k": list("abc")})
    upstream, combined = Upstream(3), PromiseIndex()
    ctis, known = [MIN] * 3, [PromiseIndex() for _ in range(3)]
    for number, (shard, rise, promised) in enumerate(reports):
        ctis[shard] = rise if ctis[shard] == MIN else ctis[shard] + rise
        known[shard].add(keys(*promised.items()))
        if number == restart:
            state, upstream = upstream.snapshot(), Upstream(3)
            upstream.restore(state)
        upstream.update(shard, ctis[shard], keys(*promised.items()))
        combined.add(upstream.take_promises())
        if len({s for s, _, _ in reports[: number + 1]}) < 3:
            assert not combined
            continue
        reached = np.min([np.maximum(k.of(everyone), t) for k, t in zip(known, ctis, strict=True)], axis=0)
        assert upstream.cti == min(ctis)
        assert np.maximum(combined.of(everyone), upstream.cti).tolist() == reached.tolist()
