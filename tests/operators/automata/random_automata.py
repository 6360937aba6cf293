"""Random automata: the same steps for the operator, as expressions, and for the oracle, as functions."""

import polars as pl
from hypothesis import strategies as st
from language.scalars import both, either, known
from plan.catalogue import AsOperator

from cedr import api, automata
from cedr.physical import operator_of
from cedr.reference import automata as ra
from cedr.testing import rows

SCHEMA = {"m": pl.Int64, "v": pl.Int64, "n": pl.Int64}
TABLE = {"source": pl.String, "symbol": pl.String, "target": pl.String}
REGISTERS = {"r": 0, "q": 1}

values = st.one_of(st.none(), st.integers(0, 3))
payloads = rows(m=st.sampled_from([0, 0, 0, 1, None]), v=values, n=st.one_of(st.integers(0, 4), st.none()))

v, r, q = pl.col("v"), pl.col("r"), pl.col("q")
STEPS = {
    "any": automata.step(),
    "low": v <= 1,
    "count": automata.step(v >= 1, r=r + 1),
    "grow": automata.step((v > r) & (v != 3), r=v, q=r),
    "few": automata.step((r < 2) | (q == 0), q=q * 2 - v),
    "odd": automata.step(~(v + r == 2) & (v >= 0), r=pl.when(q > r).then(q - 1).otherwise(pl.max_horizontal(r, v, 1))),
    "near": automata.step(r.is_between(0, v), q=-(q - v).abs()),
    "lost": automata.step(r.is_null() | v.is_null() | (v > r), r=v, q=pl.coalesce(q, 2)),
}


DEFINED = {
    "any": ra.ReferenceStep(),
    "low": ra.ReferenceStep(lambda p, s: known(lambda v: v <= 1, p.v)),
    "count": ra.ReferenceStep(
        lambda p, s: known(lambda v: v >= 1, p.v), lambda p, s: {"r": known(lambda r: r + 1, s["r"])}
    ),
    "grow": ra.ReferenceStep(
        lambda p, s: both(known(lambda v, r: v > r, p.v, s["r"]), known(lambda v: v != 3, p.v)),
        lambda p, s: {"r": p.v, "q": s["r"]},
    ),
    "few": ra.ReferenceStep(
        lambda p, s: either(known(lambda r: r < 2, s["r"]), known(lambda q: q == 0, s["q"])),
        lambda p, s: {"q": known(lambda q, v: q * 2 - v, s["q"], p.v)},
    ),
    "odd": ra.ReferenceStep(
        lambda p, s: both(known(lambda v, r: v + r != 2, p.v, s["r"]), known(lambda v: v >= 0, p.v)),
        lambda p, s: {
            "r": s["q"] - 1
            if known(lambda q, r: q > r, s["q"], s["r"])
            else max(x for x in (s["r"], p.v, 1) if x is not None)
        },
    ),
    "near": ra.ReferenceStep(
        lambda p, s: both(known(lambda r: r >= 0, s["r"]), known(lambda r, v: r <= v, s["r"], p.v)),
        lambda p, s: {"q": known(lambda q, v: -abs(q - v), s["q"], p.v)},
    ),
    "lost": ra.ReferenceStep(
        lambda p, s: either(s["r"] is None, either(p.v is None, known(lambda v, r: v > r, p.v, s["r"]))),
        lambda p, s: {"r": p.v, "q": 2 if s["q"] is None else s["q"]},
    ),
}

states = st.sampled_from(["S", "1", "F"])
transitions = st.tuples(states, st.sampled_from(sorted(STEPS)), states)
tables = st.lists(transitions, min_size=1, max_size=5).map(lambda rest: [("S", "any", "1"), ("1", "count", "F"), *rest])
table_rows = rows(source=states, symbol=st.sampled_from([*sorted(STEPS), "unknown"]), target=states)

shapes = st.fixed_dictionaries(
    {
        "by": st.sampled_from([(), ("m",)]),
        "order": st.sampled_from([None, "n"]),
        "window": st.sampled_from([None, 4, 9]),
    }
)
finals = st.sampled_from([None, ["F"], ["F", "1"]])


def native(table, **options):
    """The operator of the native plan over a random automaton."""
    return operator_of(query(table, **options).plan, [])


def recursive(table, **options):
    """The loop of the recursive plan, as one operator."""
    return AsOperator(query(table, plan="recursive", **options))


def query(table, **options):
    events = api.source("a", SCHEMA)
    return automata.automaton(events, table, start="S", steps=STEPS, registers=REGISTERS, **options)


def defined(events, table, **options):
    return ra.automaton(events, table, start="S", steps=DEFINED, registers=REGISTERS, **options)
