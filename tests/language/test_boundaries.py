"""The engine and the oracle treat the ends of scopes and simultaneous events as documented in docs/language.md."""

import pytest
from boundaries import Case, cases, histories, shown

import cedr
from cedr import api
from cedr.reference import automata as ra
from cedr.reference import patterns as rp
from cedr.temporal import History, Insert, Row

CASES = list(cases("language.md", "Which ends are included"))
A, B, C = (rp.ReferenceEventType(name, name.lower()) for name in "ABC")

ORACLES = {
    "SEQUENCE(A, B, 5)": rp.SEQUENCE(A, B, w=5),
    "ALL(A, B, 5)": rp.ALL(A, B, w=5),
    "ATLEAST(2, A, B, C, 5)": rp.ATLEAST(2, A, B, C, w=5),
    "ANY(A, B)": rp.ANY(A, B),
    "ATMOST(1, A, B, 5)": rp.ATMOST(1, A, B, w=5),
    "UNLESS(A, B, 5)": rp.UNLESS(A, B, w=5),
    "UNLESS(SEQUENCE(A, B, 5), C, 1, 8)": rp.UNLESS(rp.SEQUENCE(A, B, w=5), C, w=8, n=1),
    "NOT(C, SEQUENCE(A, B, 5))": rp.NOT(C, rp.SEQUENCE(A, B, w=5)),
    "CANCEL-WHEN(SEQUENCE(A, B, 5), C)": rp.CANCEL_WHEN(rp.SEQUENCE(A, B, w=5), C),
}
STEPS = {name: ra.ReferenceStep(lambda p, _, name=name: p.kind == name) for name in "AB"}


def engine(case: Case) -> str:
    elements = [Insert(e.vs, e.ve, Row(kind=name, v=0)) for name, h in histories(case.events, "ABC").items() for e in h]
    feed = api.source("feed", {"kind": str, "v": int}, types="kind")
    found = cedr.query(f"EVENT q WHEN {case.written}", feed).run(elements).history()
    return shown(History((e.vs, e.ve, Row()) for e in found))


def oracle(case: Case) -> str:
    inputs = histories(case.events, "ABC")
    if case.written.startswith("REGEX"):
        events = History((e.vs, e.ve, Row(kind=name)) for name, h in inputs.items() for e in h)
        found = ref_regex(events)
    else:
        found = rp.ReferencePatternQuery(ORACLES[case.written], (), lambda match: Row()).run(inputs)
    return shown(History((e.vs, e.ve, Row()) for e in found))


def ref_regex(events: History) -> History:
    return ra.regex(("then", "A", "B"), events, steps=STEPS, window=5)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.written} {c.events}")
@pytest.mark.parametrize("ask", [engine, oracle])
def test_the_table_shows_what_is_found(ask, case):
    assert ask(case) == case.answer


def test_the_table_has_every_pattern():
    assert {c.written for c in CASES} == {*ORACLES, "REGEX(A B, 5)"}
