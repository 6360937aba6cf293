"""Sources, where queries start."""

from collections.abc import Mapping
from typing import Any, Literal, Unpack

import polars as pl

from cedr.plan.nodes.source import Source
from cedr.plan.schema import as_schema, check_columns
from cedr.sources.settings import Moved, Progress, Times, expressions_of, grouped, warn_of_moved
from cedr.stream import Stream
from cedr.temporal.duration import Duration
from cedr.temporal.errors import QueryError


def source(
    name: str,
    schema: Mapping[str, Any],
    *,
    vs: str | pl.Expr | None = None,
    ve: str | pl.Expr | None = None,
    duration: Duration | pl.Expr | None = None,
    cti: str | pl.Expr | None = None,
    delay: Duration | None = None,
    times: Times | None = None,
    progress: Progress | None = None,
    types: str | None = None,
    kind: str | None = None,
    insert_only: bool | None = None,
    late: Literal["collect", "raise"] = "collect",
    valid: bool = False,
    **moved: Unpack[Moved],
) -> Stream:
    """A named stream of events with the payload columns of `schema`.

    The other arguments declare which columns of a table hold its times, and what the stream guarantees:

    vs                 the start of the lifetime
    ve or duration     its end, or its length (`"60s"`, or a column of lengths); by default an event is one instant
    cti                the column of progress: no later row changes a time before this
    delay              progress without a `cti` column: a row starts at most this long before any earlier row
    times              further settings of times: corrected ends, units, formats; see `cedr.Times`
    progress           further settings of progress: partitions, silent ones, punctuations; see `cedr.Progress`
    types, kind        the column that names an event's type, or the type of all events; for patterns
    insert_only        no row corrects an earlier one; the default for tables without `ve_new`
    late               rows that break a promise are collected (`result.late()`) or raise an error
    valid              the stream keeps all its promises and adjusts only events it contains, as streams written by
                       cedr do: nothing is checked, and no state is kept for checks

    `vs`, `ve`, `duration`, `cti` and `delay` are shortcuts: `vs="ts", delay="5s"` is
    `times=cedr.Times(vs="ts"), progress=cedr.Progress(delay="5s")`. Each time is a column, a polars expression, or an
    expression of the CEDR language. Elements (`cedr.Insert` and so on) need none of the time columns.

    Other settings of `cedr.Times` and `cedr.Progress` used to be arguments as well (`ve_new`, `unit`, `format`, `ends`,
    `ordered`, `external_ctis`, `partition`, `idle`, `progress_by`, `punctuation`, `promises`, `max_ahead`); they are
    deprecated.
    """
    what = f"source({name!r})"
    warn_of_moved(what, moved)
    shortcuts = {"vs": vs, "ve": ve, "duration": duration, "cti": cti, "delay": delay}
    flat = {**{key: value for key, value in shortcuts.items() if value is not None}, **moved}
    groups = grouped(what, flat, times, progress)
    by = "progress_by" if "progress_by" in moved else "by"
    return declared(name, schema, *groups, types, kind, insert_only, late, valid, by=by)


def source_of_keys(name: str, schema: Mapping[str, Any], **keys: Any) -> Stream:
    """A source from flat settings, by the names that job files have for them."""
    own = {key: keys.pop(key) for key in ("types", "kind", "insert_only", "late", "valid") if key in keys}
    return declared(name, schema, *grouped(f"source({name!r})", keys), **own, by="progress_by")


def declared(
    name: str,
    schema: Mapping[str, Any],
    times: Times,
    progress: Progress,
    types: str | None = None,
    kind: str | None = None,
    insert_only: bool | None = None,
    late: Literal["collect", "raise"] = "collect",
    valid: bool = False,
    *,
    by: str,
) -> Stream:
    """The source, once its settings are in groups; errors name `Progress.by` as `by`."""
    what = f"source({name!r})"
    columns = as_schema(schema, what)
    settings = times.of_source(what) | progress.of_source(what, times, columns, by)
    ve_new = settings["ve_new"]
    if types is not None:
        check_columns([types], columns, f"source({name!r}, types={types!r})")
        if kind is not None:
            raise QueryError(f"{what}: give types={types!r} or kind={kind!r}, not both")
    if insert_only and ve_new is not None:
        raise QueryError(f"{what}: insert_only=True contradicts ve_new={ve_new!r}, the column of corrections")
    only_inserts = (times.vs is not None and ve_new is None) if insert_only is None else insert_only
    return Stream(
        Source(
            name,
            tuple(columns.items()),
            **settings,
            types=types,
            kind=kind,
            insert_only=only_inserts,
            late=late,
            valid=valid,
            expressions=expressions_of(times, progress),
        )
    )
