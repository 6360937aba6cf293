"""`why`: the events a match is made of, and the proof that they make it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from cedr.columnar.chunk import VS
from cedr.columnar.tally import VE
from cedr.lineage.definition import TracedEventType, plain
from cedr.lineage.nearby import Nearby
from cedr.lineage.observed import LINEAGE, MATCH_ID, OWN, Observed, observe
from cedr.lineage.proof import proof
from cedr.lineage.rendering import Renderer, pairs, text
from cedr.plan.node import Node
from cedr.plan.schema import check_columns, first_line
from cedr.reference.patterns.instance import Instance
from cedr.runtime.why_waiting import Sentences
from cedr.sources.user_times import as_user_times
from cedr.temporal.errors import CedrError, QueryError

MOST = 3
"""Maximum number of matches that are printed."""


@dataclass(frozen=True)
class Lineage:
    """One match: its row in the answer, and the instance it is by the definitions."""

    row: dict[str, Any]
    instance: Instance
    render: Renderer

    def lines(self) -> list[str]:
        output = pairs(
            (name, text(value)) for name, value in self.row.items() if is_output(name) and not isinstance(value, list)
        )
        life = f"from {self.render.time(self.row[VS])} to {self.render.time(self.row[VE])}"
        return [f"match {life}: {output}", *proof(self.instance, self.render)]

    def contributors(self) -> list[Instance]:
        """Its events in the order of time."""
        return sorted(self.instance.leaves, key=lambda leaf: leaf.order)


@dataclass(frozen=True)
class Why:
    """Why there is a match; prints as a text. `matches` is how many fit, of which the first few are printed."""

    lineages: tuple[Lineage, ...]
    matches: int
    observed: Observed

    def __str__(self) -> str:
        lines = [line for lineage in self.lineages for line in lineage.lines()]
        if self.matches > 1:
            more = f"{self.matches} matches fit"
            lines.insert(0, more if self.matches <= MOST else f"{more}; these are the first {len(self.lineages)}")
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def contributors(self) -> pl.DataFrame:
        """The events of the printed matches: number of the match, variable, type, lifetime, id and attributes.

        A name that an attribute has already gets an underscore.
        """
        events = [
            self._event(number, lineage, leaf)
            for number, lineage in enumerate(self.lineages, 1)
            for leaf in lineage.contributors()
        ]
        return pl.concat(events, how="diagonal_relaxed")

    def _event(self, number: int, lineage: Lineage, leaf: Instance) -> pl.DataFrame:
        members = self.observed.node.members
        kind, taken = lineage.render.types[leaf.id], {name for m in members for name in m.schema}
        header = pl.DataFrame(
            {
                "match": number,
                "variable": lineage.render.variable(leaf, lineage.instance),
                "type": str(kind),
                "vs": leaf.vs,
                "ve": leaf.ve,
                "id": leaf.id,
            },
            schema_overrides={"variable": pl.String},
        )
        times = as_user_times(header, ("vs", "ve"), self.observed.time_type)
        payload = {name: [plain(value)] for name, value in leaf.payload.items()}
        attributes = pl.DataFrame(payload, schema=members[kind.source.port].schema)
        return times.rename({name: f"_{name}" for name in times.columns if name in taken}).hstack(attributes)


def is_output(name: str) -> bool:
    return name not in (VS, VE) and not name.startswith(OWN)


def why(plan: Node, data: Any, columns: Mapping[str, Any], vs: int | None, ve: int | None = None) -> Why:
    """Why there are matches with these values and times in the answer to the data."""
    observed = observe(plan, data)
    return explained(observed, fitting(observed, columns, vs, ve))


def explained(observed: Observed, rows: pl.DataFrame) -> Why:
    lineages = tuple(lineage_of(observed, row) for row in rows.head(MOST).iter_rows(named=True))
    return Why(lineages, rows.height, observed)


def fitting(observed: Observed, columns: Mapping[str, Any], vs: int | None, ve: int | None) -> pl.DataFrame:
    """The rows of the answer with these values; it is an error if there are none."""
    schema = {name: kind for name, kind in observed.node.schema.items() if is_output(name)}
    check_columns(columns, schema, "why")
    times = {VS: vs, VE: ve}
    rows = observed.answer.filter(*(pl.col(name) == time for name, time in times.items() if time is not None))
    for name, value in columns.items():
        rows = rows_with(rows, name, value, "why")
    if rows.is_empty():
        sentences = Sentences(observed.time_type)
        named = [(name, sentences.time(time)) for name, time in (("vs", vs), ("ve", ve)) if time is not None]
        requested = pairs([*named, *((n, text(v)) for n, v in columns.items())])
        raise QueryError(
            f"why: none of the {observed.answer.height} matches has {requested}; to find out what prevented one, "
            "name the events you expected by their variables: why_not(data, x={{...}})"
        )
    return rows


def rows_with(rows: pl.DataFrame, name: str, value: Any, what: str) -> pl.DataFrame:
    try:
        return rows.filter(pl.col(name).eq_missing(pl.lit(as_stored(value, rows.schema[name]))))
    except (PolarsError, TypeError, ValueError) as e:
        raise QueryError(f"{what}: {name}={value!r}, but {name} is {rows.schema[name]}: {first_line(e)}") from None


def as_stored(value: Any, kind: pl.DataType) -> Any:
    """A value as a row of the answer has it, in the type of its column: a time with its zone, a list, a struct."""
    loose = isinstance(value, str) and kind.is_temporal()  # polars would read texts as times
    return value if loose or isinstance(value, int | float) else pl.Series([value], dtype=kind)


def lineage_of(observed: Observed, row: dict[str, Any]) -> Lineage:
    """The instance behind a row of the answer."""
    nearby = Nearby(observed)
    scope = nearby.scope(contributors(nearby, row))
    ids = {name.removeprefix(OWN): id for name, id in row.items() if name.startswith(OWN) and name != LINEAGE}
    own = ids.pop(MATCH_ID.removeprefix(OWN))
    for instance in nearby.pattern.instances(scope):
        bound = {name: i.id for name, i in instance.bound.items()}
        if instance.id == own and all(bound.get(name) == id for name, id in ids.items()):
            return Lineage(row, instance, Renderer(nearby, scope))
    raise CedrError(
        f"the match at {row[VS]} is not a match by the definitions of cedr.reference.patterns; the operator and its "
        "definition disagree, which is a mistake in cedr: please report it with the query and the data"
    )


def contributors(nearby: Nearby, row: dict[str, Any]) -> Iterator[tuple[TracedEventType, Instance]]:
    for contributor in row[LINEAGE]:
        for leaf in nearby.leaves:
            if str(leaf) == contributor["type"]:
                at_its_time = nearby.instances(leaf, pl.col(VS) == contributor["vs"])
                yield from ((leaf, i) for i in at_its_time if i.id == contributor["id"])
