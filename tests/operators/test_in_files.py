"""State in files: the answers of the oracle, and chunk by chunk what state in memory gives, at full disks and after."""

import random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_files import files_of_at_most, use_files
from oracle_check import check_against_oracle, runs
from storage.through_bytes import through_bytes

import cedr
from cedr import reference as ref
from cedr.columnar import mapped
from cedr.columnar.chunk import chunk_of
from cedr.columnar.mapped import MEMORY, SpillError
from cedr.operators import layout
from cedr.operators.aggregate import AggregateOperator
from cedr.operators.join import JoinOperator
from cedr.operators.locality import Locality
from cedr.plan import aggregates as agg
from cedr.temporal import Adjust, Cti, Insert, Row
from cedr.temporal.time import INF
from cedr.testing import rows

SCHEMA = {"k": pl.Int64, "v": pl.String}
payloads = rows(k=st.one_of(st.none(), st.integers(0, 2)), v=st.sampled_from([None, "", "a text longer than a view"]))
TEXTS = {"k": pl.Int64, "s": pl.String, "x": pl.Float64}


def same_key(left, right):
    return left.k is not None and left.k == right.k


def combined(left, right):
    return Row(k=left.k, v=left.v, v_right=right.v)


@pytest.fixture
def in_files(monkeypatch, tmp_path):
    use_files(monkeypatch, tmp_path)


@pytest.mark.usefixtures("in_files", "snapshot_layout")
@pytest.mark.parametrize("latency", ["perfect", "eager"])
@given(run=runs(payloads, max_size=12))
def test_a_count_by_key(latency, run):
    check_against_oracle(
        lambda: AggregateOperator(SCHEMA, ["k"], {"n": agg.Count("v")}, latency),
        lambda h: ref.aggregate(h, ("k",), n=ref.count("v")),
        run[0],
        [SCHEMA],
        run[1],
    )


@pytest.mark.usefixtures("in_files", "changing_layout")
@given(run=runs(payloads, ports=2))
def test_a_join(run):
    check_against_oracle(
        lambda: JoinOperator(SCHEMA, SCHEMA, ["k"], ["k"]),
        lambda left, right: ref.join(left, right, same_key, combine=combined),
        run[0],
        [SCHEMA, SCHEMA],
        run[1],
    )


# --- queries ----------------------------------------------------------------------------------------------------------


def source(name):
    return cedr.source(name, TEXTS, vs="ts", ve="te")


QUERIES = {
    "join": lambda: source("a").join(source("b"), on="k"),
    "semi join": lambda: source("a").join(source("b"), on="k", how="semi"),
    "sum": lambda: source("a").union(source("b")).group_by("s").agg(n=cedr.count(), x=cedr.sum("x")),
    "distinct": lambda: source("a").union(source("b")).select("k", "s").distinct(),
    "session": lambda: source("a").union(source("b")).session(4, by="s"),
}


def stream(seed, size=25):
    choose = random.Random(seed)
    live, front, found = [], 0, []
    for i in range(size):
        elements = []
        for _ in range(choose.randrange(1, 6)):
            if live and choose.random() < 0.2:
                vs, old, payload = live.pop(choose.randrange(len(live)))
                new = vs + choose.randrange(9)
                if min(old, new) >= front and new != old:
                    elements.append(Adjust(vs, old, new, payload))
            else:
                vs = max(front, i + choose.randrange(-5, 5))
                payload = Row(
                    k=choose.choice([None, 1, 2, 3, 4]),
                    s=choose.choice([None, "", "x", f"a text that is long enough {choose.randrange(9)}"]),
                    x=choose.choice([None, 0.5, -3.0]),
                )
                live.append((vs, vs + choose.randrange(1, 30), payload))
                elements.append(Insert(*live[-1]))
        if choose.random() < 0.3:
            front = max(front, i - 6)
            elements.append(Cti(front))
        found.append((choose.choice("ab"), elements))
        live = [item for item in live if item[2] is not None and min(item[:2]) >= front]
    return found


def changes(engine, steps):
    """The output after each chunk, and after the end of both sources."""
    steps = [*steps, ("a", [Cti(INF)]), ("b", [Cti(INF)])]
    return [sorted(str(e) for e in engine.push(name, chunk_of(elements, TEXTS)).elements()) for name, elements in steps]


def one_source(steps):
    """Both sources are adjusted by one stream, so that only one of them may get it."""
    return [("a", elements) for _, elements in steps]


@pytest.mark.usefixtures("changing_layout", "snapshot_layout")
@pytest.mark.parametrize("name", QUERIES)
def test_the_same_changes_as_in_memory(name, monkeypatch, tmp_path):
    steps = one_source(stream(7))
    steps += [("b", elements) for _, elements in stream(8)]
    plain = changes(QUERIES[name]().engine(), steps)
    use_files(monkeypatch, tmp_path)
    engine = QUERIES[name]().engine(state_memory=1)
    middle = len(steps) // 2
    found = [engine.push(source_name, chunk_of(e, TEXTS)) for source_name, e in steps[:middle]]
    assert MEMORY.on_disk > 0
    restored = QUERIES[name]().engine(state_memory=1)
    restored.restore(through_bytes(engine.snapshot()))
    first = [sorted(str(e) for e in out.elements()) for out in found]
    assert first + changes(restored, steps[middle:]) == plain


@pytest.mark.usefixtures("changing_layout")
def test_a_full_disk_is_an_error_and_the_restart_goes_on(monkeypatch, tmp_path):
    steps = one_source(stream(3)) + [("b", elements) for _, elements in stream(4)]
    plain = changes(QUERIES["join"]().engine(), steps)
    use_files(monkeypatch, tmp_path)
    engine = QUERIES["join"]().engine(state_memory=1)
    saved = [engine.snapshot()]

    def go_on():
        for name, elements in steps:
            engine.push(name, chunk_of(elements, TEXTS))
            saved.append(engine.snapshot())

    with files_of_at_most(4096), pytest.raises(SpillError, match=rf"into the folder {tmp_path}: File too large"):
        go_on()
    done = len(saved) - 1
    assert done > 0
    restarted = QUERIES["join"]().engine(state_memory=1)
    restarted.restore(through_bytes(saved[-1]))
    assert changes(restarted, steps[done:]) == plain[done:]


def test_small_state_is_not_in_files():
    engine = QUERIES["join"]().engine(state_memory="1g")
    changes(engine, one_source(stream(1)))
    assert MEMORY.limit == 1 << 30
    assert mapped.address(engine.operators[-1].keys.index._slots) not in MEMORY.files


@pytest.mark.parametrize("short", [True, False])
def test_state_is_in_blocks_if_memory_is_short(short, monkeypatch):
    """Even if chunks are as large as the state."""
    monkeypatch.setattr(MEMORY, "limits", {"test": 0} if short else {})
    rows = layout.MUCH_STATE
    assert Locality(touched_cost=100).prefers_blocks(rows, rows, now=False) is short
    assert layout.is_small(rows, rows) is short
    assert layout.is_large(rows, rows) is not short
