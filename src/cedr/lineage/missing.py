"""Events as users describe them, and what is closest to a description that no event fits."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from cedr.arguments import as_chronon
from cedr.columnar.chunk import VS
from cedr.columnar.tally import VE
from cedr.lineage.definition import TracedEventType
from cedr.lineage.diagnosis import Named
from cedr.lineage.nearby import Nearby, accepted
from cedr.lineage.observed import EVENT
from cedr.lineage.reasons import NoSuchEvent, NothingNear
from cedr.plan.schema import check_columns, first_line
from cedr.reference.patterns.instance import Instance
from cedr.reference.patterns.pattern import ReferenceScope
from cedr.temporal.errors import QueryError

START = ("vs", "Vs")
"""How a description names the start of an event, unless an attribute is called so."""

Description = Mapping[str, Any]


def described(leaf: TracedEventType, description: Description, nearby: Nearby) -> pl.Expr:
    """What holds of the events a user describes, checked."""
    what = f"why_not({leaf.var}={dict(description)!r})" if isinstance(description, Mapping) else ""
    if not what:
        raise QueryError(
            f"why_not({leaf.var}={description!r}): describe the event by its attributes and its start, such as "
            f'{leaf.var}={{"Machine_Id": "web1", "vs": 5}}'
        )
    schema = nearby.node.members[leaf.source.port].schema
    check_columns([name for name in description if name in schema or name not in START], schema, what)
    fits = pl.all_horizontal(pl.lit(value=True), *facts(description, schema, what))
    try:
        pl.DataFrame(schema={VS: pl.Int64, **schema}).filter(fits)
    except PolarsError as e:
        raise QueryError(f"{what}: {first_line(e)}") from None
    return fits


def facts(description: Description, schema: Mapping[str, Any], what: str = "why_not") -> list[pl.Expr]:
    """One condition for each entry of a description."""
    return [
        pl.col(name).eq_missing(pl.lit(value)) if name in schema else pl.col(VS) == as_chronon(value, f"{what}: {name}")
        for name, value in description.items()
    ]


def no_such_event(leaf: TracedEventType, description: Description, nearby: Nearby) -> NoSuchEvent:
    observed, port = nearby.observed, leaf.source.port
    schema = nearby.node.members[port].schema
    fits = pl.all_horizontal(pl.lit(value=True), *facts(description, schema))
    removed = accepted(observed.removed[port], leaf.source).filter(fits)
    return NoSuchEvent(
        leaf,
        dict(description),
        put_aside(leaf, description, nearby),
        removed.height,
        of_other_type(leaf, description, nearby),
        nearest(leaf, description, nearby),
    )


def put_aside(leaf: TracedEventType, description: Description, nearby: Nearby) -> tuple[str, ...]:
    """The messages of late rows that fit."""
    late, schema = nearby.observed.late, nearby.node.members[leaf.source.port].schema
    if not {*schema} <= set(late.columns):
        return ()
    fitting = accepted(late, leaf.source).filter(*facts(description, schema))
    return tuple(fitting["_message" if "message" in schema else "message"])


def of_other_type(leaf: TracedEventType, description: Description, nearby: Nearby) -> pl.DataFrame | None:
    """An event that is as described, but for its type."""
    for port, (events, member) in enumerate(zip(nearby.observed.events, nearby.node.members, strict=True)):
        if not all(name in member.schema or name in START for name in description):
            continue
        same = events.filter(pl.lit(value=True), *facts(description, member.schema))
        if port == leaf.source.port and leaf.source.where is not None:
            same = same.filter(~leaf.source.where.fill_null(value=False))
        if same.height and (port != leaf.source.port or leaf.source.where is not None):
            return same.head(1).drop(VE, EVENT)
    return None


def nearest(leaf: TracedEventType, description: Description, nearby: Nearby) -> Instance | None:
    """The event of this type that agrees in most; of several, the one that starts nearest."""
    schema = nearby.node.members[leaf.source.port].schema
    events = accepted(nearby.observed.events[leaf.source.port], leaf.source)
    agreeing = pl.sum_horizontal(pl.lit(0), *(f.cast(pl.Int64) for f in facts(description, schema)))
    starts = [as_chronon(v, "why_not") for name, v in description.items() if name in START and name not in schema]
    distance = (pl.col(VS) - (starts[0] if starts else 0)).abs() if starts else pl.col(VS)
    best = events.sort(agreeing, distance, descending=[True, False]).head(1)
    return None if best.is_empty() else nearby.instances(leaf, pl.col(EVENT) == best[EVENT][0])[0]


def nothing_near(reason: NothingNear, scope: ReferenceScope, named: Named, nearby: Nearby) -> NothingNear:
    """The same reason with the event of this type that is nearest to a given one: of its key, if there is one."""
    given = [
        (leaf, i) for leaf in nearby.leaves for i in scope.inputs[leaf.kind] if i.id in named.get(leaf.var or "", ())
    ]
    leaf, first = min(given, key=lambda g: g[1].order)
    attributes = nearby.node.key.attributes[int(reason.leaf.kind)]
    alike = dict(zip(attributes, nearby.key(leaf, first) or (), strict=False))
    return replace(reason, nearest=nearest(reason.leaf, {**alike, START[0]: first.vs}, nearby))
