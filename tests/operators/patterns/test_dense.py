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
