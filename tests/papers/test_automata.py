"""On-the-fly Progress Detection in Iterative Stream Queries, section 4: automata as inputs, `ABBA`, and the W query."""

import numpy as np
import polars as pl
import pytest

import cedr
from cedr import INF, History, Row
from cedr.reference import automata as ra

both_plans = pytest.mark.parametrize("plan", ["native", "recursive"])

# --- Figure 4: A B* A over ABBA ------------------------------------------------------------------------------------
#
#   symbols      A  B  B  A        S -A-> 1 -A-> F, and 1 -B-> 1
#   number       1  2  3  4

AB_STAR_A = [("S", "A", "1"), ("1", "B", "1"), ("1", "A", "F")]
SYMBOLS = cedr.source("symbols", {"number": int, "symbol": str}, vs="number", duration="inf")
ABBA = pl.DataFrame({"number": [1, 2, 3, 4], "symbol": list("ABBA")})
NINE = [
    (1, 0, "S"), (2, 1, "S"), (3, 2, "S"), (4, 3, "S"),
    (1, 1, "1"), (1, 2, "1"), (1, 3, "1"), (1, 4, "F"), (4, 4, "1"),
]  # fmt: skip
"""Begin, end and state: four seeds, and A:1, AB:2, ABB:3, ABBA:4 and A:4."""


@both_plans
def test_abba_has_nine_outputs(plan):
    query = cedr.automaton(SYMBOLS, AB_STAR_A, start="S", symbol="symbol", order="number", plan=plan)
    found = query.run(ABBA).table()
    assert sorted(found.select("begin", "end", "state").rows()) == sorted(NINE)
    assert found["vs"].to_list() == found.select(pl.max_horizontal("begin", "end"))["begin"].to_list()


def test_abba_by_definition():
    events = History((i + 1, INF, Row(number=i + 1, symbol=c)) for i, c in enumerate("ABBA"))
    found = ra.automaton(events, AB_STAR_A, start="S", symbol="symbol", order="number")
    assert sorted((p.begin, p.end, p.state) for _, _, p in found) == sorted(NINE)


@both_plans
def test_the_automaton_is_an_input_and_changes_while_the_query_runs(plan):
    """From 3 on it looks for A B C: the row that ends with A goes, and another comes."""
    table = cedr.source("table", {"source": str, "symbol": str, "target": str}, vs="since", ve="until")
    rows = pl.DataFrame(
        [("S", "A", "1", 0, None), ("1", "B", "1", 0, None), ("1", "A", "F", 0, 3), ("1", "C", "F", 3, None)],
        schema=["source", "symbol", "target", "since", "until"],
        orient="row",
    )
    events = cedr.source("events", {"symbol": str}, vs="ts", duration=3)
    found = cedr.automaton(events, table, start="S", final="F", symbol="symbol", plan=plan)
    data = pl.DataFrame({"ts": range(6), "symbol": list("AAAABC")})
    answer = found.run({"events": data, "table": rows}).table()
    assert answer.select("vs", "ve", "begin", "end").rows() == [
        (1, 3, 0, 1),
        (2, 3, 1, 2),
        (5, 6, 3, 5),
    ]


# --- the W query ---------------------------------------------------------------------------------------------------
#
#   U D^i U^j D^k U^l with i + k = j + l: down, up, down and up again, back to where it began.
#   The register m counts downticks minus upticks. Section 5.1 has 7 states, 11 transitions and one final state.

TICK, M = pl.col("tick"), pl.col("m")
UP, DOWN = TICK == "U", TICK == "D"
W_STEPS = {
    "first": UP,
    "down": cedr.step(DOWN, m=M + 1),
    "up": cedr.step(UP, m=M - 1),
    "on": cedr.step(UP & (M > 1), m=M - 1),
    "back": cedr.step(UP & (M == 1), m=M - 1),
}
W_TABLE = [
    ("S", "first", "U"),
    ("U", "down", "D"), ("D", "down", "D"),
    ("D", "up", "DU"), ("DU", "up", "DU"),
    ("DU", "down", "DUD"), ("DUD", "down", "DUD"),
    ("DUD", "on", "DUDU"), ("DUDU", "on", "DUDU"),
    ("DUD", "back", "F"), ("DUDU", "back", "F"),
]  # fmt: skip
TICKS = cedr.source("ticks", {"tick": str}, vs="ts")


def by_hand(ticks: str, window: int) -> list[tuple[int, int]]:
    """Every stretch within the window that reads as a W."""
    found = []
    for begin in range(len(ticks)):
        for end in range(begin + 1, min(begin + window, len(ticks))):
            body = ticks[begin + 1 : end + 1]
            runs = [len(run) for run in body.replace("DU", "D U").replace("UD", "U D").split()]
            down_first = ticks[begin] == "U" and body[0] == "D"
            if down_first and len(runs) == 4 and runs[0] + runs[2] == runs[1] + runs[3]:
                found.append((begin, end))
    return found


def ws(ticks: str, window: int, plan: str) -> list[tuple[int, int]]:
    automaton = {"start": "S", "final": "F", "steps": W_STEPS, "registers": {"m": 0}, "window": window}
    query = cedr.automaton(TICKS, W_TABLE, plan=plan, **automaton)
    found = query.run(pl.DataFrame({"ts": range(len(ticks)), "tick": list(ticks)}), chunk_size=100)
    assert (found.table()["m"] == 0).all()
    return sorted(found.table().select("begin", "end").rows())


def test_the_w_query_has_the_states_and_transitions_of_the_paper():
    assert len(W_TABLE) == 11
    assert len({state for source, _, target in W_TABLE for state in (source, target)}) == 7


@both_plans
def test_a_w(plan):
    assert ws("UDDUDDUUU", 30, plan) == [(0, 8)]
    assert ws("UDDUDDUUU", 8, plan) == []


@both_plans
def test_the_w_query_over_coin_tosses_finds_every_w(plan):
    ticks = "".join(np.random.default_rng(11).choice(["U", "D"], 2000))
    expected = by_hand(ticks, 30)
    assert len(expected) > 100
    assert ws(ticks, 30, plan) == expected


@both_plans
def test_the_w_query_as_a_regular_expression(plan):
    ticks = "".join(np.random.default_rng(12).choice(["U", "D"], 500))
    found = cedr.regex(
        "first down+ up+ down+ again+",
        TICKS,
        first=UP,
        down=W_STEPS["down"],
        up=W_STEPS["up"],
        again=cedr.step(UP & (M > 0), m=M - 1),
        registers={"m": 0},
        window=30,
        plan=plan,
    ).where(M == 0)
    answer = found.run(pl.DataFrame({"ts": range(len(ticks)), "tick": list(ticks)})).table()
    assert sorted(answer.select("begin", "end").rows()) == by_hand(ticks, 30)
