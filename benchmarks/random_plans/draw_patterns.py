"""Random patterns over the tables of a plan."""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from random_plans.patterns import Pattern, leaves, query_text

if TYPE_CHECKING:
    from random_plans.draw import Drawing, Made

COMPARABLE = (pl.Int64, pl.Int32, pl.UInt8, pl.String, pl.Date, pl.Boolean)


class PatternDrawing:
    """A pattern in the making: its event types, the gap between events of a key, and its conditions."""

    def __init__(self, d: "Drawing", inputs: "list[Made]", attributes: list[str], gap: float, modes: bool) -> None:
        self.d, self.inputs, self.attributes, self.gap, self.modes = d, inputs, attributes, gap, modes
        self.variables = 0

    def scope(self) -> int:
        return max(1, int(self.gap * np.exp(self.d.rng.uniform(np.log(0.1), np.log(1.5)))))

    def event(self, mode: str = "") -> dict[str, Any]:
        self.variables += 1
        return {
            "p": "event",
            "type": f"T{self.d.between(0, len(self.inputs) - 1)}",
            "var": f"x{self.variables}",
            "mode": mode,
        }

    def pattern(self, depth: int) -> dict[str, Any]:
        if depth == 0 or self.variables >= 4:
            return self.event()
        return self.operator(depth)

    def operator(self, depth: int) -> dict[str, Any]:
        kind = self.d.one_of(["sequence", "sequence", "atleast", "unless", "unless", "not", "cancel"])
        if kind == "sequence":
            return self.sequence(depth)
        if kind == "atleast":
            children = [
                self.pattern(depth - 1) if self.d.chance(0.2) else self.event() for _ in range(self.d.between(2, 3))
            ]
            n = self.d.one_of([1, 2, len(children)])
            return {"p": "atleast", "of": children, "n": n, "w": 1 if n == 1 else self.scope()}
        if kind == "not":
            return {"p": "not", "of": [self.sequence(depth - 1), self.pattern(depth - 1)]}
        kept = self.pattern(depth - 1) if self.d.chance(0.7) else self.event()
        forbidden = self.event() if self.d.chance(0.7) else self.pattern(depth - 1)
        if kind == "cancel":
            return {"p": "cancel", "of": [kept if kept["p"] != "event" else self.sequence(1), forbidden]}
        count = {"sequence": len(kept.get("of", ())), "not": 2}.get(kept["p"], 1 if kept["p"] == "unless" else 0)
        n = self.d.between(1, count) if count and self.d.chance(0.4) else None
        return {"p": "unless", "of": [kept, forbidden], "w": self.scope(), "n": n}

    def sequence(self, depth: int) -> dict[str, Any]:
        children = [
            self.pattern(depth - 1) if self.d.chance(0.3) else self.event() for _ in range(self.d.between(2, 3))
        ]
        return {"p": "sequence", "of": children, "w": self.scope()}

    def selecting(self) -> dict[str, Any]:
        """A sequence, or all of some events, of which some are selected or used up."""
        modes = ["", "FIRST", "LAST", "CONSUME", "FIRST CONSUME", "LAST CONSUME"]
        kind = self.d.one_of(["sequence", "sequence", "atleast"])
        if kind == "atleast":
            modes = modes[:3]
        children = [self.event(self.d.one_of(modes)) for _ in range(self.d.between(2, 3))]
        found = {"p": kind, "of": children, "w": self.scope()}
        return {**found, "n": len(children)} if kind == "atleast" else found

    def top(self) -> dict[str, Any]:
        if self.modes:
            return self.selecting()
        if self.d.chance(0.1):
            children = [self.event() for _ in range(self.d.between(1, 2))]
            return {"p": "atmost", "of": children, "n": self.d.between(1, 3), "w": self.scope()}
        return self.operator(self.d.between(1, 2))

    # --- conditions ----------------------------------------------------------------------------------------------

    def comparison(self, scope: list[str]) -> list[Any] | None:
        schema = self.inputs[0].frame.schema
        columns = [a for a in self.attributes if schema[a] in (pl.Int64, pl.Int32, pl.UInt8, pl.String)]
        if not columns or not scope:
            return None
        a, x = self.d.one_of(columns), self.d.one_of(scope)
        if len(scope) > 1 and self.d.chance(0.6):
            y = self.d.one_of([v for v in scope if v != x])
            return ["pair", x, a, self.d.one_of(["<", ">=", "<>"]), y, a]
        values = self.inputs[0].frame[a].drop_nulls()
        if not len(values):
            return None
        return ["const", x, a, self.d.one_of(["<", ">=", "<>"]), values[self.d.between(0, len(values) - 1)]]


def scopes(pattern: Pattern) -> list[list[str]]:
    """Sets of variables that have a value together: of each pattern, and of a negated one with what it negates."""
    if pattern["p"] == "event":
        return [[pattern["var"]]]
    found = [s for child in pattern["of"] for s in scopes(child)]
    if pattern["p"] in ("unless", "not", "cancel"):
        kept, forbidden = ([leaf["var"] for leaf in leaves(c, negated=False)] for c in pattern["of"])
        return [*found, kept + forbidden]
    if pattern["p"] == "atmost":
        return found
    return [*found, [leaf["var"] for leaf in leaves(pattern, negated=False)]]


def negations(pattern: Pattern) -> int:
    return (pattern["p"] in ("unless", "not", "cancel")) + sum(negations(c) for c in pattern.get("of", ()))


def match(d: "Drawing", depth: int) -> "Made":
    from random_plans.draw import RefusedError

    count = d.between(1, 3)
    plain = d.chance(0.4) if d.shape.unique else False
    inputs = [d.source() if plain or d.chance(0.5) else d.small(min(depth, 3)) for _ in range(count)]
    inputs = [filtered(d, made) for made in inputs]
    first = inputs[0]
    shared = [c for c in first.firm if all(c in m.firm and m.frame.schema[c] == first.frame.schema[c] for m in inputs)]
    attributes = [c for c in shared if first.frame.schema[c] in COMPARABLE]
    total = sum(m.frame.height for m in inputs)
    if not attributes or not total:
        raise RefusedError
    keyed = d.chance(0.9) and "k" in attributes
    rows = total / len(inputs)
    groups = first.frame["k"].n_unique() if keyed else 1
    gap = d.shape.span * max(groups, 1) / max(rows, 1)
    drawing = PatternDrawing(d, inputs, attributes, gap, all(m.starts for m in inputs) and d.chance(0.6))
    pattern = drawing.top()
    where: list[list[Any]] = [["key", "k"]] if keyed else []
    if not keyed and negations(pattern) == 0 and pattern["p"] != "atmost" and d.chance(0.3):
        where.append(["unique", d.one_of(attributes)])
    if d.chance(0.1) and "v" in attributes:
        where.append(["fixed", "v", 3])
    known = scopes(pattern)
    together = [scope for scope in known if len(scope) > 1] or known
    more = [
        drawing.comparison(d.one_of(together if d.chance(0.6) else known)) for _ in range(d.one_of([0, 0, 1, 1, 2]))
    ]
    where += [condition for condition in more if condition]
    outputs = drawn_outputs(d, pattern, attributes)
    types = [f"T{i}" for i in range(len(inputs))]
    used = sorted({leaf["type"] for leaf in leaves(pattern)})
    inputs = [made for name, made in zip(types, inputs, strict=True) if name in used]
    node = {"op": "match", "types": used, "pattern": pattern, "where": where, "outputs": outputs}
    node["text"] = query_text(node)
    return d.add(node, *inputs, finite=True, soft=frozenset())


def filtered(d: "Drawing", made: "Made") -> "Made":
    """Fewer events, so that different types do not have the same ones."""
    if not d.chance(0.6) or not made.firm:
        return made
    return d.add({"op": "where", "p": d.predicate(made)}, made, starts=made.starts)


def drawn_outputs(d: "Drawing", pattern: Pattern, attributes: list[str]) -> list[list[Any]]:
    found: list[list[Any]] = []
    if pattern["p"] != "atmost":
        shown = [leaf["var"] for leaf in leaves(pattern, negated=False) if d.chance(0.7)]
        found = [[d.fresh(), x, d.one_of([*attributes, "Vs"])] for x in shown]
    if d.chance(0.3) or not found:
        found.append([d.fresh(), "COUNT"])
    if d.chance(0.3):
        found.append([d.fresh(), "Rt"])
    if pattern["p"] != "atmost" and d.chance(0.2) and "v" in attributes:
        found.append([d.fresh(), "MAX", "v"])
    return found
