"""Random patterns with conditions, each as a pattern of the oracle and of the plan, and the ids both use.

`asked()` draws an `Asked`: a pattern of the oracle and the same pattern for a plan, conditions for both, and what is
put out for each match. Now and then a pattern in it is an earlier one again, under other names, with the same or nearly
the same conditions. Events are rows of `SCHEMA`; their type is the column `kind`, so that all come through one port,
or each type has a port of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st

from cedr import api
from cedr.kernels.ids import event_ids, idgen_of, leaf_ids, summands
from cedr.operators.patterns.events import content_of
from cedr.plan.nodes import Match
from cedr.plan.patterns import tree as plan
from cedr.plan.patterns.spec import ends_with_event, scoped
from cedr.reference import patterns as ref
from cedr.temporal import History, Row
from cedr.testing import rows

KINDS = "ABC"
SCHEMA = {"kind": pl.String, "m": pl.Int64, "n": pl.Int64}


def payloads(kinds: str = KINDS) -> st.SearchStrategy[Row]:
    return rows(
        kind=st.sampled_from(kinds), m=st.sampled_from([0, 0, 0, 1, 1, None]), n=st.sampled_from([1, 1, 0, 2, 1, None])
    )


# --- ids -----------------------------------------------------------------------------------------------------------


@cache
def engine_ids(**schema: Any) -> ref.Ids:
    """The ids of the operator, for the oracle: they order two instances that start together."""

    @cache
    def event_id(kind: str, vs: int, payload: Row, copy: int) -> int:
        content = content_of(np.array([vs]), pl.DataFrame([dict(payload)], schema=schema))
        return int(leaf_ids(event_ids(content, np.array([copy])), kind)[0])

    return ref.Ids(event_id, composite_id)


def composite_id(ids) -> int:
    return int(idgen_of(summands(np.array(ids, dtype=np.int64)).sum(dtype=np.uint64, keepdims=True))[0])


ENGINE_IDS = engine_ids(**SCHEMA)


# --- patterns ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """One pattern in both forms."""

    oracle: ref.ReferencePattern
    plan: plan.Pattern


@dataclass
class Drawing:
    """A pattern in the making."""

    draw: Callable[..., Any]
    ports: int
    modes: bool
    """Whether selection and consumption are drawn."""
    repeats: int
    """How many of ten patterns are an earlier one again."""
    made: list[Pair] = field(default_factory=list)
    copies: list[dict[str, str]] = field(default_factory=list)
    """For each pattern that is an earlier one, the names of the earlier one's variables in it."""
    names: Any = field(default_factory=lambda: (f"v{i}" for i in count()))
    leaves: int = 0

    def name(self, often: int = 4) -> str | None:
        return next(self.names) if self.draw(st.integers(0, 4)) < often else None

    def scope(self) -> int:
        return self.draw(st.sampled_from([8, 5, 3, 6, 10, 2, 1]))

    def event(self, selecting: bool = False) -> Pair:
        self.leaves += 1
        kind, var = self.draw(st.sampled_from(KINDS)), self.name()
        modes = self.draw_modes() if selecting else {}
        port = KINDS.index(kind) if self.ports > 1 else 0
        where = None if self.ports > 1 else pl.col("kind") == kind
        return Pair(ref.ReferenceEventType(kind, var, **modes), plan.EventType(kind, port, where, var=var, **modes))

    def draw_modes(self) -> dict[str, str]:
        if not self.modes:
            return {}
        selection = self.draw(st.sampled_from(["EACH", "EACH", "FIRST", "LAST"]))
        return {"selection": selection, "consumption": self.draw(st.sampled_from(["REUSE", "REUSE", "CONSUME"]))}

    def pattern(self, depth: int, selecting: bool = False) -> Pair:
        if depth == 0 or self.leaves >= 5 or self.draw(st.integers(0, 5)) == 0:
            return self.event(selecting)
        if self.made and self.leaves < 5 and self.draw(st.integers(0, 9)) < self.repeats:
            return self.again(self.draw(st.sampled_from(self.made)), selecting)
        kinds = ["sequence", "sequence", "atleast", "atmost", "unless", "unless", "not", "cancel"]
        self.made.append(self.operator(self.draw(st.sampled_from(kinds)), depth, selecting))
        return self.made[-1]

    def again(self, earlier: Pair, selecting: bool) -> Pair:
        """An earlier pattern with other variables, now and then in another scope."""
        names = {p.var: next(self.names) for p in earlier.plan.walk() if p.var}
        self.copies.append(names)
        self.leaves += len(earlier.plan.leaves())
        changes: dict[str, Any] = {}
        if isinstance(earlier.plan, plan.Sequence | plan.AtLeast):
            changes = {"selection": "EACH", "consumption": "REUSE", **(self.draw_modes() if selecting else {})}
        if hasattr(earlier.plan, "w") and self.draw(st.integers(0, 2)) == 0:
            changes["w"] = self.scope()
        return Pair(*(replace(renamed(p, names), **changes) for p in (earlier.oracle, earlier.plan)))

    def operator(self, kind: str, depth: int, selecting: bool = False) -> Pair:
        if kind in ("sequence", "atleast"):
            return self.ordered(kind, depth, selecting)
        w, var = self.scope(), self.name(1)
        if kind == "atmost":
            params = [self.pattern(depth - 1) for _ in range(self.draw(st.integers(1, 2)))]
            n = self.draw(st.integers(1, 3))
            return Pair(
                ref.ATMOST(n, *(p.oracle for p in params), w=w, var=var),
                plan.AtMost(n, tuple(p.plan for p in params), w, var=var),
            )
        if kind == "not":
            kept = self.ordered(self.draw(st.sampled_from(["sequence", "atleast"])), depth - 1)
            self.made.append(kept)
        else:
            kept = self.pattern(depth - 1)
        forbidden = self.pattern(depth - 1)
        if kind == "unless":
            most = kept.plan.contributors
            n = self.draw(st.one_of(st.none(), st.integers(1, most))) if most else None
            return Pair(
                ref.UNLESS(kept.oracle, forbidden.oracle, w=w, n=n, var=var),
                plan.Unless(kept.plan, forbidden.plan, w, n, var=var),
            )
        if kind == "not":
            return Pair(ref.NOT(forbidden.oracle, kept.oracle, var=var), plan.Not(kept.plan, forbidden.plan, var=var))
        return Pair(
            ref.CANCEL_WHEN(kept.oracle, forbidden.oracle, var=var),
            plan.CancelWhen(kept.plan, forbidden.plan, var=var),
        )

    def ordered(self, kind: str, depth: int, selecting: bool = False) -> Pair:
        params = [self.pattern(max(depth - 1, 0), self.modes) for _ in range(self.draw(st.integers(1, 3)))]
        w, var = self.scope(), self.name(1)
        modes = self.draw_modes() if selecting else {}
        oracles, plans = tuple(p.oracle for p in params), tuple(p.plan for p in params)
        if kind == "sequence":
            oracle = ref.SEQUENCE(*oracles, w=w, var=var)
            return Pair(with_modes(oracle, modes), plan.Sequence(plans, w, var=var, **modes))
        n = self.draw(st.integers(1, len(params)))
        oracle = ref.ATLEAST(n, *oracles, w=w, var=var)
        return Pair(with_modes(oracle, modes), plan.AtLeast(n, plans, w, var=var, **modes))


def with_modes(pattern, modes):
    return replace(pattern, **modes)


def renamed(pattern, names: dict[str, str]):
    """A pattern of the oracle or a plan with other variables."""

    def renamed_part(value):
        if isinstance(value, tuple):
            return tuple(map(renamed_part, value))
        return renamed(value, names) if isinstance(value, ref.ReferencePattern | plan.Pattern) else value

    parts = {f.name: renamed_part(getattr(pattern, f.name)) for f in fields(pattern)}
    return replace(pattern, **{**parts, "var": names.get(pattern.var)})


# --- conditions ----------------------------------------------------------------------------------------------------

COMPARISONS = {
    "same m": (
        lambda x, y: x.payload.m == y.payload.m is not None,
        lambda x, y: pl.col(f"{x}.m") == pl.col(f"{y}.m"),
    ),
    "n not larger": (
        lambda x, y: None not in (x.payload.n, y.payload.n) and x.payload.n <= y.payload.n,
        lambda x, y: pl.col(f"{x}.n") <= pl.col(f"{y}.n"),
    ),
    "not long before": (
        lambda x, y: abs(x.vs - y.vs) <= 4,
        lambda x, y: (pl.col(f"{x}.Vs") - pl.col(f"{y}.Vs")).abs() <= 4,
    ),
    "roots": (
        lambda x, y: x.rt <= y.rt + 3,
        lambda x, y: pl.col(f"{x}.Rt") <= pl.col(f"{y}.Rt") + 3,
    ),
    "ids": (lambda x, y: x.id <= y.id, lambda x, y: pl.col(f"{x}.Id") <= pl.col(f"{y}.Id")),
}
OF_EVENTS = ("same m", "n not larger")
ALONE = {
    "n": (lambda x: x.payload.n is not None and x.payload.n > 0, lambda x: pl.col(f"{x}.n") > 0),
    "start": (lambda x: x.vs % 3 != 0, lambda x: pl.col(f"{x}.Vs") % 3 != 0),
    "id": (lambda x: x.id % 2 == 0, lambda x: pl.col(f"{x}.Id") % 2 == 0),
}


@st.composite
def conditions(draw, pattern: Pair, copies: Sequence[dict[str, str]] = ()):
    """Conditions in both forms; those about a pattern often apply to its copies, too."""
    scopes = [(own, outer) for own, outer in scoped(pattern.plan) if own]
    events = {leaf.var for leaf in pattern.plan.leaves() if leaf.var}
    counts = any(isinstance(p, plan.AtMost) for p in pattern.plan.walk())
    both: list[tuple[ref.ReferenceCondition, plan.Condition]] = []
    for _ in range(draw(st.sampled_from([0, 1, 1, 2, 3]))):
        kind = draw(st.sampled_from(["key", "unique", "fixed", "pair", "pair", "pair", "alone"]))
        if kind == "key":
            both.append((ref.ReferenceCorrelationKey("m"), plan.CorrelationKey("m")))
        elif kind == "unique" and not counts:
            both.append((ref.ReferenceCorrelationKey("n", "UNIQUE"), plan.CorrelationKey("n", "UNIQUE")))
        elif kind == "fixed":
            both.append((ref.ReferenceAttributeEqual("n", 1), plan.AttributeEqual("n", 1)))
        elif kind == "alone" and scopes:
            x = draw(st.sampled_from(sorted(draw(st.sampled_from(scopes))[0])))
            name = draw(st.sampled_from(["n", "start", "id"] if x in events else ["start", "id"]))
            both += [predicate(ALONE[name], *names) for names in applied_to(draw, (x,), copies, scopes)]
        elif kind == "pair" and scopes:
            own, outer = draw(st.sampled_from(scopes))
            x, y = draw(st.sampled_from(sorted(own))), draw(st.sampled_from(sorted(own | outer)))
            if x == y:
                continue
            if draw(st.booleans()):
                x, y = y, x
            names = list(COMPARISONS) if {x, y} <= events else [n for n in COMPARISONS if n not in OF_EVENTS]
            comparison = COMPARISONS[draw(st.sampled_from(names))]
            both += [predicate(comparison, *names) for names in applied_to(draw, (x, y), copies, scopes)]
    return tuple(one for one, _ in both), tuple(other for _, other in both)


def predicate(forms, *names: str) -> tuple[ref.ReferencePredicate, plan.Predicate]:
    test, expression = forms
    return ref.ReferencePredicate(" ".join(names), test), plan.Predicate(names, expression(*names))


def applied_to(draw, names: tuple[str, ...], copies, scopes) -> list[tuple[str, ...]]:
    """The variables of a predicate, and those it has in copies, where these have a value together."""
    found = [names]
    for copy in copies:
        found += [tuple(copy.get(x, x) for x in chosen) for chosen in found if set(chosen) & set(copy)]
    known = [
        chosen for chosen in found if any(own & set(chosen) and set(chosen) <= own | outer for own, outer in scopes)
    ]
    return [chosen for chosen in known if chosen == names or draw(st.integers(0, 3))]


# --- queries -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    query: ref.ReferencePatternQuery
    node: Match

    @property
    def ports(self) -> int:
        return len(self.node.members)

    def oracle(self, *histories: History) -> History:
        return self.query.run(by_kind(*histories))

    def __repr__(self) -> str:
        shown = [str(getattr(c, "expression", c)) for c in self.node.where]
        return f"Asked({self.node.pattern}, where={shown}, outputs={[n for n, _ in self.node.outputs]})"


def by_kind(*histories: History) -> dict[str, History]:
    if len(histories) > 1:
        return dict(zip(KINDS, histories, strict=True))
    return {kind: histories[0].where(lambda p, kind=kind: p.kind == kind) for kind in KINDS}


def outputs_of(pattern: Pair, extra: tuple[str, ...]) -> tuple[Callable, tuple]:
    """What is put out: all attributes of all variables, and some of the header."""
    events = {leaf.var for leaf in pattern.plan.leaves() if leaf.var}
    shown = sorted(pattern.plan.variables)
    columns = {f"{x}_{a}": (x, a) for x in shown for a in (("n", "Vs", "m") if x in events else ("Vs", "Rt"))}

    def output(match: ref.Instance) -> Row:
        def value(x, a):
            if (bound := match.bound.get(x)) is None:
                return None
            return {"Vs": bound.vs, "Rt": bound.rt}.get(a) if a in ("Vs", "Rt") else bound.payload[a]

        header = {"Vs": match.vs, "Ve": match.ve, "Rt": match.rt, "Id": match.id, "cbt": lineage(match)}
        return Row({**{name: value(x, a) for name, (x, a) in columns.items()}, **{h: header[h] for h in extra}})

    expressions = [(name, pl.col(f"{x}.{a}")) for name, (x, a) in columns.items()]
    return output, (*expressions, *((h, pl.col(h)) for h in extra))


def lineage(match: ref.Instance) -> list[Row]:
    leaves = sorted(match.leaves, key=lambda leaf: (leaf.vs, leaf.id))
    return [Row(type=leaf.payload["kind"], id=leaf.id, vs=leaf.vs) for leaf in leaves]


def ask(pattern: Pair, where=((), ()), extra: tuple[str, ...] = ("Rt",), ports: int = 1, latency=None) -> Asked:
    output, outputs = outputs_of(pattern, extra)
    members = tuple(api.source(kind, SCHEMA).plan for kind in KINDS[:ports])
    node = Match(members, pattern.plan, where[1], outputs, latency=latency)
    return Asked(ref.ReferencePatternQuery(pattern.oracle, where[0], output, ENGINE_IDS), node)


@st.composite
def asked(
    draw, depth: int = 2, modes: bool = False, ports: tuple[int, ...] = (1, 1, 3), operator=None, repeats: int = 2
) -> Asked:
    """A random query; `operator` is its outermost one, `modes`: whether it selects and consumes."""
    drawing = Drawing(draw, draw(st.sampled_from(ports)), modes, repeats)
    kinds = ["sequence", "atleast", "atmost", "unless", "not", "cancel"]
    pattern = drawing.operator(operator or draw(st.sampled_from(kinds)), depth)
    if ends_with_event(pattern.plan):
        pattern = Pair(ref.ANY(pattern.oracle), plan.AtLeast(1, (pattern.plan,), 1))
    where = draw(conditions(pattern, drawing.copies))
    extra = tuple(h for h in ("Rt", "Vs", "Ve", "Id", "cbt") if h == "Rt" or draw(st.integers(0, 4)) == 0)
    return ask(pattern, where, extra, drawing.ports)
