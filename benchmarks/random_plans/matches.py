"""Patterns by definition, as SQL joins of the events' tables, run by DuckDB. Nothing of cedr is used.

Each pattern becomes one table of its instances: `vs`, `ve`, `rt`, the starts `cb1`, `cb2`, .. of its contributors, and
for each variable x of its positive side `x_in` (does it take part?), `x_id`, `x_vs` and the attributes `x_a`.
Negation is an anti join, selection a window function; consumption, which depends on what was emitted before, is a loop.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby, permutations
from typing import Any

import duckdb
import polars as pl

from random_plans.intervals import TooLargeError, numbered, snapshots
from random_plans.patterns import Pattern
from random_plans.tables import E, S

Frame = pl.DataFrame


@dataclass(frozen=True)
class Relation:
    """A table of instances."""

    name: str
    variables: tuple[str, ...]
    contributors: int


class Matching:
    """One evaluation: the connection, the conditions and the attributes that are asked for."""

    def __init__(self, node: Mapping[str, Any], inputs: Mapping[str, Frame], limit: int) -> None:
        self.connection = duckdb.connect(config={"threads": 1})
        self.where, self.limit, self.tables = node["where"], limit, 0
        self.attributes = [c for c in next(iter(inputs.values())).columns if c not in (S, E)]
        for name, frame in inputs.items():
            self.connection.register(name, frame.with_row_index("_id").to_arrow())

    def table(self, sql: str, variables: tuple[str, ...], contributors: int) -> Relation:
        self.tables += 1
        name = f"r{self.tables}"
        self.connection.execute(f"CREATE TEMP TABLE {name} AS {sql} LIMIT {self.limit + 1}")
        rows = self.connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
        if rows > self.limit:
            raise TooLargeError
        return Relation(name, variables, contributors)

    def columns(self, variable: str) -> list[str]:
        return [f"{variable}_{c}" for c in ("in", "id", "vs", *self.attributes)]

    # --- conditions ----------------------------------------------------------------------------------------------

    def conditions(self, places: Mapping[str, str], new: tuple[str, ...] = ()) -> list[str]:
        """What WHERE asks of these variables, given the table of each; with `new`, only what concerns those."""
        found = []
        names = list(places)
        for condition in self.where:
            match condition:
                case ["key" | "unique" as kind, a]:
                    sign = "=" if kind == "key" else "<>"
                    pairs = [(x, a, sign, y, a) for i, x in enumerate(names) for y in names[i + 1 :]]
                case ["pair", x, a, sign, y, b]:
                    pairs = [(x, a, sign, y, b)] if x in places and y in places else []
                case _:
                    pairs = []
            for x, a, sign, y, b in pairs:
                if not new or x in new or y in new:
                    found.append(self.compared(places, x, a, sign, y, b))
        return found

    def compared(self, places: Mapping[str, str], x: str, a: str, sign: str, y: str, b: str) -> str:
        one, other = f"{places[x]}.{x}", f"{places[y]}.{y}"
        asked = f"{one}_{a} {sign} {other}_{b}"
        unsure = [f"NOT {v}_in" for v, name in ((one, x), (other, y)) if name in self.optional]
        return f"({' OR '.join([*unsure, f'coalesce({asked}, false)'])})" if unsure else asked

    # --- patterns ------------------------------------------------------------------------------------------------

    optional: frozenset[str] = frozenset()
    """Variables that do not take part in every instance."""

    def instances(self, pattern: Pattern) -> Relation:
        return getattr(self, pattern["p"])(pattern)

    def event(self, pattern: Pattern) -> Relation:
        x = pattern["var"]
        asked = []
        for condition in self.where:
            match condition:
                case ["fixed", a, value]:
                    asked.append(f'"{a}" = {sql_literal(value)}')
                case ["const", name, a, sign, value] if name == x:
                    asked.append(f'"{a}" {sign} {sql_literal(value)}')
        attributes = "".join(f', "{a}" AS {x}_{a}' for a in self.attributes)
        sql = (
            f"SELECT {S} AS vs, {S} + 1 AS ve, {S} AS rt, true AS {x}_in, "
            f"'{pattern['type']}' || _id AS {x}_id, {S} AS {x}_vs{attributes} FROM {pattern['type']}"
        )
        return self.table(sql + (f" WHERE {' AND '.join(asked)}" if asked else ""), (x,), 0)

    def sequence(self, pattern: Pattern) -> Relation:
        found = [self.instances(child) for child in pattern["of"]]
        return self.selected(pattern, self.ordered(found, pattern["w"]))

    def ordered(self, found: list[Relation], w: int) -> Relation:
        """Instances of these relations one after the other, one join after the other: DuckDB knows how to join two
        tables by an interval, but not how to order several such joins."""
        first = found[0]
        columns = ["vs", f"greatest(vs + {w}, vs + 1) AS ve", "rt", "vs AS cb1", *self.all_columns(first)]
        made = self.table(f"SELECT {', '.join(columns)} FROM {first.name}", first.variables, 1)
        for i, relation in enumerate(found[1:], start=1):
            places = {**dict.fromkeys(made.variables, "p"), **dict.fromkeys(relation.variables, "e")}
            asked = ["e.vs > p.vs", f"e.vs <= p.cb1 + {w}", *self.conditions(places, relation.variables)]
            columns = [
                "e.vs AS vs",
                f"greatest(p.cb1 + {w}, e.vs + 1) AS ve",
                "least(p.rt, e.rt) AS rt",
                *(f"p.cb{j} AS cb{j}" for j in range(1, i + 1)),
                f"e.vs AS cb{i + 1}",
                *(f"p.{c} AS {c}" for c in self.all_columns(made)),
                *(f"e.{c} AS {c}" for c in self.all_columns(relation)),
            ]
            sql = f"SELECT {', '.join(columns)} FROM {made.name} p JOIN {relation.name} e ON {' AND '.join(asked)}"
            made = self.table(sql, made.variables + relation.variables, i + 1)
        return made

    def all_columns(self, relation: Relation) -> list[str]:
        return [c for x in relation.variables for c in self.columns(x)]

    def atleast(self, pattern: Pattern) -> Relation:
        found = [self.instances(child) for child in pattern["of"]]
        n, everything = pattern["n"], tuple(x for r in found for x in r.variables)
        parts = []
        for chosen in permutations(range(len(found)), n):
            made = self.ordered([found[i] for i in chosen], pattern["w"])
            known = set(self.all_columns(made))
            values = [c if c in known else absent(c) for x in everything for c in self.columns(x)]
            starts = [f"cb{i + 1}" for i in range(n)]
            parts.append(f"SELECT vs, ve, rt, {', '.join([*starts, *values])} FROM {made.name}")
        if n < len(found):
            self.optional |= set(everything)
        whole = f"SELECT * FROM ({' UNION ALL '.join(parts)})"
        return self.selected(pattern, self.table(whole, everything, n))

    def unless(self, pattern: Pattern) -> Relation:
        kept, forbidden = (self.instances(child) for child in pattern["of"])
        w, start = pattern["w"], f"cb{pattern['n']}" if pattern["n"] else "vs"
        alone = self.without(kept, forbidden, f"k.{start}", f"k.{start} + {w}")
        others = ", ".join(f"k.{c}" for x in kept.variables for c in self.columns(x))
        vs = f"greatest(k.{start} + {w}, k.vs)" if pattern["n"] else "k.vs"
        times = f"{vs} AS vs, greatest(k.vs + {w}, {vs} + 1) AS ve, k.rt AS rt, k.vs AS cb1"
        sql = f"SELECT {times}, {others} FROM ({alone}) k"
        return self.table(sql, kept.variables, 1)

    def not_(self, pattern: Pattern) -> Relation:
        kept, forbidden = (self.instances(child) for child in pattern["of"])
        sql = self.without(kept, forbidden, "k.cb1", f"k.cb{kept.contributors}")
        return self.table(sql, kept.variables, kept.contributors)

    def cancel(self, pattern: Pattern) -> Relation:
        kept, forbidden = (self.instances(child) for child in pattern["of"])
        return self.table(self.without(kept, forbidden, "k.rt", "k.vs"), kept.variables, kept.contributors)

    def without(self, kept: Relation, forbidden: Relation, after: str, before: str) -> str:
        places = {**dict.fromkeys(kept.variables, "k"), **dict.fromkeys(forbidden.variables, "f")}
        asked = [f"f.vs > {after}", f"f.vs < {before}", *self.conditions(places, forbidden.variables)]
        counted = f"(SELECT row_number() OVER () AS n, * FROM {kept.name}) k"
        sql = f"SELECT DISTINCT k.n FROM {counted} JOIN {forbidden.name} f ON {' AND '.join(asked)}"
        threatened = self.table(sql, (), 0)
        return f"SELECT * EXCLUDE (n) FROM {counted} ANTI JOIN {threatened.name} USING (n)"

    # --- selection and consumption -------------------------------------------------------------------------------

    def selected(self, pattern: Pattern, found: Relation) -> Relation:
        """Parameters with a mode are single events that start at different times."""
        modes = [child.get("mode", "") for child in pattern["of"]]
        if not any(modes):
            return found
        names = [child.get("var") for child in pattern["of"]]
        last = completing(pattern)
        if any("CONSUME" in mode for mode in modes):
            return self.consumed(found, names, modes, last)
        sql = f"SELECT * FROM {found.name}"
        for x, mode in zip(names, modes, strict=True):
            if mode:
                extreme = f"{'min' if mode == 'FIRST' else 'max'}(CASE WHEN {x}_in THEN {x}_vs END)"
                wanted = f"{extreme} OVER (PARTITION BY {last})"
                sql = f"SELECT * FROM ({sql}) QUALIFY NOT {x}_in OR {wanted} IS NULL OR {x}_vs = {wanted}"
        return self.table(sql, found.variables, found.contributors)

    def consumed(self, found: Relation, names: list[str], modes: list[str], last: str) -> Relation:
        frame = self.connection.execute(f"SELECT row_number() OVER () AS n, * FROM {found.name}").pl()
        ids = [f"{x}_id" for x in names]
        starts = [f"{x}_vs" for x in names]
        rows = frame.sort("vs", last).select("n", *ids, *starts).rows()
        k, gone, kept = len(names), set(), []
        for _, group in groupby(rows, key=lambda row: row[k]):
            left = [row for row in group if not gone.intersection(row[1 : k + 1])]
            for i, mode in enumerate(modes):
                if left and ("FIRST" in mode or "LAST" in mode):
                    best = (min if "FIRST" in mode else max)(row[k + 1 + i] for row in left)
                    left = [row for row in left if row[k + 1 + i] == best]
            kept += [row[0] for row in left]
            gone |= {row[1 + i] for row in left for i, mode in enumerate(modes) if "CONSUME" in mode}
        self.tables += 1
        wanted = f"kept{self.tables}"
        self.connection.register(wanted, pl.DataFrame({"n": kept}, schema={"n": pl.Int64}).to_arrow())
        counted = f"SELECT row_number() OVER () AS n, * FROM {found.name}"
        sql = f"SELECT * EXCLUDE (n) FROM ({counted}) SEMI JOIN {wanted} USING (n)"
        return self.table(sql, found.variables, found.contributors)


def absent(column: str) -> str:
    return f"{'false' if column.endswith('_in') else 'NULL'} AS {column}"


def completing(pattern: Pattern) -> str:
    """The id of the last contributor, as SQL."""
    names = [child["var"] for child in pattern["of"]]
    if pattern["p"] == "sequence":
        return f"{names[-1]}_id"
    cases = " ".join(f"WHEN {x}_in AND {x}_vs = vs THEN {x}_id" for x in names)
    return f"CASE {cases} END"


def sql_literal(value: Any) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def matches(node: Mapping[str, Any], *frames: Frame, limit: int) -> Frame:
    inputs = dict(zip(node["types"], frames, strict=True))
    wanted = used(node)
    inputs = {name: frame.select(S, E, *wanted) for name, frame in inputs.items()}
    if node["pattern"]["p"] == "atmost":
        return at_most(node, inputs, limit)
    if too_many_pairs(node, inputs, limit):
        raise TooLargeError
    matching = Matching(node, inputs, limit)
    found = matching.instances(renamed_not(node["pattern"]))
    columns = [f'{output_sql(o, found.variables)} AS "{o[0]}"' for o in node["outputs"]]
    sql = f"SELECT vs AS {S}, ve AS {E}, {', '.join(columns)} FROM {found.name}"
    return typed(matching.connection.execute(sql).pl(), node, frames[0])


def renamed_not(pattern: Pattern) -> Pattern:
    if pattern["p"] == "event":
        return pattern
    return {
        **pattern,
        "p": "not_" if pattern["p"] == "not" else pattern["p"],
        "of": [renamed_not(c) for c in pattern["of"]],
    }


def typed(found: Frame, node: Mapping[str, Any], example: Frame) -> Frame:
    """With the types of the attributes, which DuckDB shows in its own way."""
    casts = {o[0]: example.schema[o[2]] for o in node["outputs"] if len(o) == 3 and o[2] != "Vs"}
    return found.cast(
        {name: kind for name, kind in casts.items() if found.schema[name] != kind} | {S: pl.Int64, E: pl.Int64}
    )


def used(node: Mapping[str, Any]) -> list[str]:
    found = [c[1] for c in node["where"] if c[0] in ("key", "unique", "fixed")]
    found += [c[2] for c in node["where"] if c[0] in ("const", "pair")]
    found += [c[5] for c in node["where"] if c[0] == "pair"]
    found += [o[2] for o in node["outputs"] if len(o) == 3]
    return sorted({a for a in found if a != "Vs"})


def output_sql(output: list[Any], variables: tuple[str, ...]) -> str:
    match output:
        case [_, "COUNT"]:
            return " + ".join(f"({x}_in)::BIGINT" for x in variables)
        case [_, "MAX", a]:
            return (
                f"greatest({', '.join(f'{x}_{a}' for x in variables)})" if len(variables) > 1 else f"{variables[0]}_{a}"
            )
        case [_, x, a]:
            return f"{x}_{'vs' if a == 'Vs' else a}"
        case [_, header]:
            return header.lower()
    raise ValueError(f"no output {output}")


def too_many_pairs(node: Mapping[str, Any], inputs: Mapping[str, Frame], limit: int) -> bool:
    """Would a join by the key compare the times of too many pairs?"""
    keys = [c[1] for c in node["where"] if c[0] == "key"]
    if not keys:
        return False
    counts = [frame.drop_nulls(keys).group_by(keys).len("n") for frame in inputs.values()]
    events = pl.concat(counts).group_by(keys).agg(pl.col("n").max().cast(pl.Int64))
    return bool((events["n"] ** 2).sum() > 2 * limit)


def at_most(node: Mapping[str, Any], inputs: Mapping[str, Frame], limit: int) -> Frame:
    """Snapshots of all events under a sliding window, of each key by itself, with at most n of them."""
    pattern = node["pattern"]
    keys = [c[1] for c in node["where"] if c[0] == "key"]
    parts = []
    for child in pattern["of"]:
        frame = inputs[child["type"]]
        for c in node["where"]:
            if c[0] == "fixed":
                frame = frame.filter(pl.col(c[1]) == c[2])
            if c[0] == "const" and c[1] == child["var"]:
                frame = frame.filter(compared(pl.col(c[2]), c[3], c[4]))
        parts.append(frame)
    events = pl.concat(parts)
    alone = pl.any_horizontal(pl.col(k).is_null() for k in keys) if keys else pl.lit(False)
    events = events.with_row_index("_row").with_columns(_alone=pl.when(alone).then(pl.col("_row")))
    (group,) = numbered([events], [[*keys, "_alone"]])
    vs = events[S].to_numpy()
    rows, snapshot, start, end = snapshots(group, vs, vs + pattern["w"], limit)
    alive = events[rows].with_columns(_n=pl.Series(snapshot))
    aggregates = []
    for o in node["outputs"]:
        match o:
            case [name, "COUNT"]:
                aggregates.append(pl.len().cast(pl.Int64).alias(name))
            case [name, "MAX", a]:
                aggregates.append(pl.col(a).max().alias(name))
            case [name, "Rt"]:
                aggregates.append(pl.col(S).min().alias(name))
    result = alive.group_by("_n").agg(pl.len().alias("_count"), *aggregates).filter(pl.col("_count") <= pattern["n"])
    at = result["_n"].to_numpy()
    return result.drop("_n", "_count").with_columns(pl.Series(S, start[at]), pl.Series(E, end[at]))


def compared(one: pl.Expr, sign: str, other: Any) -> pl.Expr:
    return {"=": one == other, "<": one < other, ">=": one >= other, "<>": one != other}[sign]
