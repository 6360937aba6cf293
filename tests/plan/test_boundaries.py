"""The engine and the oracle treat the ends of lifetimes and ties as documented in docs/streams.md."""

from collections.abc import Callable

import pytest
from boundaries import Case, cases, histories, shown

import cedr
from cedr import api
from cedr import reference as ref
from cedr.stream import Stream
from cedr.temporal import History, Insert, Interval, Row

CASES = list(cases("streams.md", "Which ends are included"))
a, b = (api.source(name, {"v": int}) for name in "ab")


def same(p, q) -> bool:
    return p.v == q.v


Oracle = Callable[[History, History], History]
ORACLES: dict[str, Oracle] = {
    "a.sliding(5)": lambda a, b: ref.sliding(a, 5),
    "a.moving(5)": lambda a, b: ref.moving(a, 5),
    "a.tumbling(5)": lambda a, b: ref.tumbling(a, 5),
    "a.hopping(10, 5)": lambda a, b: ref.hopping(a, 10, 5),
    "a.inserts()": lambda a, b: ref.inserts(a),
    "a.deletes()": lambda a, b: ref.deletes(a),
    "a.shift(3)": lambda a, b: ref.shift(a, 3),
    "a.slice((2, 5))": lambda a, b: ref.slice_occurrence(a, Interval(2, 5)),
    "a.chop(5)": lambda a, b: ref.chop(a, 5),
    "a.session(5)": lambda a, b: ref.session(a, 5),
    "a.clip(b, on='v')": lambda a, b: ref.clip(a, b, same),
    "a.join(b, on='v')": lambda a, b: ref.join(a, b, same, combine=lambda p, q: p),
    "a.join(b, on='v', how='anti')": lambda a, b: ref.anti_join(a, b, same),
    "a.union(b)": lambda a, b: ref.union(a, b),
    "a.difference(b)": lambda a, b: ref.difference(a, b),
    "a.intersect(b)": lambda a, b: ref.intersect(a, b),
    "a.distinct()": lambda a, b: ref.distinct(a),
    "a.coalesce()": lambda a, b: ref.coalesce(a),
    "a.agg(n=cedr.count())": lambda a, b: ref.aggregate(a, by=[], n=ref.count()),
    "a.agg(x=cedr.first('v'), y=cedr.last('v'))": lambda a, b: ref.aggregate(
        a, by=[], x=ref.first("v"), y=ref.last("v")
    ),
    "a.top_k(1, by='v')": lambda a, b: ref.top_k(a, 1, lambda p: p.v),
}


def engine(case: Case) -> str:
    stream: Stream = eval(case.written, {"a": a, "b": b, "cedr": cedr})
    known = histories(case.events, "ab")
    elements = {name: [Insert(*e) for e in h] for name, h in known.items()}
    return plainly(stream.run(elements if "(b" in case.written else elements["a"]).history())


def oracle(case: Case) -> str:
    return plainly(ORACLES[case.written](*histories(case.events, "ab").values()))


def plainly(history: History) -> str:
    """Without the column v where all it has is 0."""
    shows = ({k: v for k, v in e.payload.items() if (k, v) != ("v", 0)} for e in history)
    return shown(History((e.vs, e.ve, Row(row)) for e, row in zip(history, shows, strict=True)))


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.written} {c.events}")
@pytest.mark.parametrize("ask", [engine, oracle])
def test_the_table_shows_what_is_found(ask, case):
    assert ask(case) == case.answer


def test_the_table_has_every_operator():
    assert {c.written for c in CASES} == set(ORACLES)
