"""Many events of one key within one scope: what is selected and consumed, compared with the definition step by step."""

from random import Random

import polars as pl
import pytest

import cedr

SCOPE = 60


def expected(rows, selection, consumes_first, consumes_second):
    """Completing events in order, each with the first, the last or all of the earlier events that are left."""
    consumed, matches = set(), []
    for at, kind, k in rows:
        if kind != "B" or (at, k) in consumed:
            continue
        left = [s for s, other, j in rows if (other, j) == ("A", k) and s < at <= s + SCOPE and (s, k) not in consumed]
        chosen = {"EACH": left, "FIRST": left[:1], "LAST": left[-1:]}[selection]
        matches += [(s, at, k) for s in chosen]
        if consumes_first:
            consumed |= {(s, k) for s in chosen}
        if consumes_second and chosen:
            consumed.add((at, k))
    return sorted(matches)


@pytest.mark.parametrize("chunk_size", [6, 1_000])
@pytest.mark.parametrize("consumption", ["REUSE", "CONSUME"])
@pytest.mark.parametrize("selection", ["EACH", "FIRST", "LAST"])
def test_selection_and_consumption_in_a_dense_key(selection, consumption, chunk_size):
    random = Random(f"{selection} {consumption}")
    rows = [(at, random.choice("AAB"), random.randrange(2)) for at in range(120)]
    arriving = sorted(rows, key=lambda row: row[0] + random.randrange(25))
    table = pl.DataFrame(arriving, schema={"ts": pl.Int64, "kind": pl.String, "k": pl.Int64}, orient="row")
    source = cedr.source("events", {"kind": str, "k": int, "at": int}, vs="ts", delay=30, types="kind")
    for second in ("REUSE", "CONSUME"):
        query = cedr.query(
            f"EVENT P WHEN SEQUENCE(A x {selection} {consumption}, B y {second}, {SCOPE}) WHERE x.k = y.k "
            "OUTPUT x.at AS a, y.at AS b, x.k AS k",
            source,
        )
        found = query.run(table.with_columns(at="ts"), chunk_size=chunk_size).table().select("a", "b", "k").rows()
        assert sorted(found) == expected(rows, selection, consumption == "CONSUME", second == "CONSUME")
        assert found


def with_condition(rows, selection, atleast):
    """The same without consumption, of those events that are smaller; `atleast`: the other way round, too."""
    matches = []
    for at, kind, k, v in rows:
        for other in ("A", "B") if atleast else ("A",):
            if kind == other or (kind == "A" and not atleast):
                continue
            before = [s for s, o, j, w in rows if (o, j) == (other, k) and s < at <= s + SCOPE]
            left = [s for s in before if (rows[s][3] < v) == (kind == "B")] if rows[at][3] is not None else []
            chosen = {"FIRST": left[:1], "LAST": left[-1:]}[selection]
            matches += [(s, at, k) if kind == "B" else (at, s, k) for s in chosen]
    return sorted(matches)


@pytest.mark.parametrize("pattern", ["SEQUENCE(A x {0}, B y, {1})", "ATLEAST(2, A x {0}, B y {0}, {1})"])
@pytest.mark.parametrize("selection", ["FIRST", "LAST"])
def test_selection_with_a_condition_in_a_dense_key(selection, pattern):
    random = Random(f"{selection} {pattern}")
    values = random.sample(range(120), 120)
    rows = [(at, random.choice("AAB"), random.randrange(2), values[at]) for at in range(120)]
    arriving = sorted(rows, key=lambda row: row[0] + random.randrange(25))
    table = pl.DataFrame(
        arriving, schema={"ts": pl.Int64, "kind": pl.String, "k": pl.Int64, "v": pl.Int64}, orient="row"
    )
    source = cedr.source("events", {"kind": str, "k": int, "v": int, "at": int}, vs="ts", delay=30, types="kind")
    text = pattern.format(selection, SCOPE)
    query = cedr.query(
        f"EVENT P WHEN {text} WHERE x.k = y.k AND x.v < y.v OUTPUT x.at AS a, y.at AS b, x.k AS k", source
    )
    found = query.run(table.with_columns(at="ts"), chunk_size=7).table().select("a", "b", "k").rows()
    assert sorted(found) == with_condition(rows, selection, pattern.startswith("ATLEAST"))
    assert found
