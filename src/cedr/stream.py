"""Streams: the public way to write a query, one method per operator.

A stream never changes; each method gives a new one. Names, types and keys are checked as the query is written. Nothing
runs before `run`, `updates` or `engine`.

    busy = feed.where(pl.col("load") > 0.9).sliding("60s").group_by("machine").agg(n=cedr.count())
    busy.run(table).table()
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import length_hint
from typing import TYPE_CHECKING, Any, Literal, get_args

import polars as pl
from polars.exceptions import PolarsError

from cedr.columnar.chunk import Chunk
from cedr.notebook import Text
from cedr.operators.base import Latency
from cedr.operators.iterate.ffp import Progress
from cedr.operators.iterate.settings import MOST, TURNS, Settings
from cedr.operators.merge.by_column import Wrong
from cedr.operators.merge.policy import Policy, as_policy
from cedr.plan import nodes
from cedr.plan.analysis import Findings, analyse
from cedr.plan.consistency import Flavour
from cedr.plan.explain import explain
from cedr.plan.iteration import iterate, loop_of
from cedr.plan.joins import How
from cedr.plan.lifetime_expressions import length_function, progress_function, start_function
from cedr.plan.node import Node
from cedr.plan.optimizer import RULES, Rule, optimize
from cedr.plan.payloads import keep, project
from cedr.plan.physical import Fragment, fragment_of
from cedr.plan.properties import properties
from cedr.plan.schema import Schema, check_columns, column_names, first_line, show_expression, show_schema
from cedr.plan.versions import tell_versions, valid_during, versions
from cedr.runtime import local
from cedr.runtime.engine import Engine
from cedr.runtime.result import Result
from cedr.temporal.calendar import calendar, check_no_months
from cedr.temporal.consistency import MIDDLE, STRONG, WEAK, Consistency
from cedr.temporal.duration import Duration, duration
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, MIN, as_time
from cedr.temporal.time import show as show_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cedr.lineage.why import Why
    from cedr.lineage.why_not import WhyNot
    from cedr.runtime.spark.driver.changelog import Changelog
    from cedr.runtime.spark.driver.streaming import RunningQuery
    from cedr.sinks.base import TableSink

Expressions = pl.Expr | str
Columns = str | pl.Expr | Sequence[str | pl.Expr]
"""Names of columns; `pl.col(name)` will do, other expressions are refused."""
Times = tuple[int | datetime | None, int | datetime | None]
LEVELS = {"strong": STRONG, "middle": MIDDLE, "weak": WEAK}


class Stream:
    """A stream of events with lifetimes, and what is asked of it; made by `cedr.source` and `cedr.query`.

    Every operator gives a new stream, and nothing runs before `run`, `updates`, `start` or `batch`.
    """

    def __init__(self, plan: Node) -> None:
        plan.schema  # noqa: B018 computing it checks the node
        self.plan = plan

    def __repr__(self) -> str:
        return f"Stream({show_schema(self.schema)})"

    def _repr_html_(self) -> str:
        from cedr.notebook import stream_html

        return stream_html(self)

    def __rich__(self) -> Any:
        from cedr.notebook import stream_rich

        return stream_rich(self)

    @property
    def schema(self) -> Schema:
        """Names and types of the payload."""
        return dict(self.plan.schema)

    @property
    def columns(self) -> list[str]:
        return list(self.plan.schema)

    # --- payloads ------------------------------------------------------------------------------------------------

    def where(self, *predicates: Expressions) -> "Stream":
        """The rows for which all predicates hold: polars expressions, or SQL text such as `"load > 0.9"`."""
        if not predicates:
            raise QueryError('where() needs a predicate, such as where(pl.col("load") > 0.9)')
        return Stream(nodes.Select(self.plan, tuple(as_expression(p, "where") for p in predicates)))

    def select(self, *expressions: Expressions, **named: Expressions) -> "Stream":
        """Payloads made of these columns and expressions."""
        wanted = as_columns(expressions, named)
        if not wanted:
            raise QueryError('select() needs columns or expressions, such as select("machine", load=pl.col("l") / 100)')
        return Stream(project(self.plan, wanted))

    def with_columns(self, *expressions: Expressions, **named: Expressions) -> "Stream":
        """The payload with columns added or replaced."""
        added = project(self.plan, as_columns(expressions, named)).outputs
        new = {name: output for output in added for name in output.names}
        kept = [new.get(name) or same for name, same in zip(self.columns, keep(self.columns), strict=True)]
        stream = Stream(nodes.Project(self.plan, tuple({o.names: o for o in [*kept, *added]}.values())))
        order = [*self.columns, *(name for name in new if name not in self.plan.schema)]
        return stream if stream.columns == order else stream.select(*order)

    # --- lifetimes -----------------------------------------------------------------------------------------------

    def sliding(self, length: Duration) -> "Stream":
        """Each event counts for `length` from its start on."""
        return Stream(nodes.Sliding(self.plan, duration(length, "sliding: length")))

    def moving(self, length: Duration) -> "Stream":
        """Each event counts for `length` from its start on, but no longer than it lives."""
        return Stream(nodes.Moving(self.plan, duration(length, "moving: length")))

    def hopping(self, size: Duration, hop: Duration, offset: Duration = 0, zone: str | None = None) -> "Stream":
        """Windows of `size`, one every `hop`. With a zone, both are days, weeks, months or years of its calendar."""
        if zone is not None:
            grid = calendar(size, hop, offset, zone, "hopping")
            return Stream(nodes.Hopping(self.plan, grid.cells * grid.usual, grid.usual, grid.offset, grid))
        check_no_months("hopping", size, hop)
        lengths = duration(size, "hopping: size"), duration(hop, "hopping: hop")
        return Stream(nodes.Hopping(self.plan, *lengths, duration(offset, "hopping: offset", least=0)))

    def tumbling(self, size: Duration, offset: Duration = 0, zone: str | None = None) -> "Stream":
        """Windows of `size`, one after the other. With a zone, they are days, weeks, months or years of its calendar:
        `tumbling("1 day", zone="Europe/Berlin")` from midnight to midnight there. Weeks begin on Monday; the offset
        lets every window begin later."""
        if zone is not None:
            grid = calendar(size, size, offset, zone, "tumbling")
            return Stream(nodes.Hopping(self.plan, grid.usual, grid.usual, grid.offset, grid))
        check_no_months("tumbling", size)
        length = duration(size, "tumbling: size")
        return Stream(nodes.Hopping(self.plan, length, length, duration(offset, "tumbling: offset", least=0)))

    def inserts(self) -> "Stream":
        """Each event counts for ever from its start on."""
        return Stream(nodes.Inserts(self.plan))

    def deletes(self) -> "Stream":
        """Each event counts for ever from its end on."""
        return Stream(nodes.Deletes(self.plan))

    def shift(self, by: Duration) -> "Stream":
        """Lifetimes moved by a length of time; whole numbers may be negative."""
        return Stream(nodes.Shift(self.plan, duration(by, "shift: by", least=-(2**62))))

    def slice(self, occurrence: Times | None = None, valid: Times | None = None) -> "Stream":
        """Events that meet an interval, cut to it: `slice((start, end))`; None leaves a side open.

        `occurrence` is the language's `@`, `valid` its `#`. Most streams have one axis of time, and both cut the same.
        Of a stream of `versions`, `valid` cuts the lifetimes they speak of.
        """
        if occurrence is None and valid is None:
            raise QueryError("slice() needs an interval, such as slice(occurrence=(10, 20))")
        axis, inner = interval(occurrence, "slice: occurrence"), interval(valid, "slice: valid")
        if not tell_versions(self.plan):
            axis, inner = (max(axis[0], inner[0]), min(axis[1], inner[1])), EVER
        for start, end in (axis, inner):
            if start >= end:
                raise QueryError(
                    f"slice: nothing lies in [{show_time(start)}, {show_time(end)}); the start must be earlier"
                )
        plan = self.plan if inner == EVER else valid_during(self.plan, *inner)
        return Stream(plan if axis == EVER else nodes.Slice(plan, *axis))

    def versions(self, id: str = "id", vs: str = "vs", ve: str = "ve", *, statements: bool = False) -> "Stream":
        """Rows that say for a while that event `id` is valid during `[vs, ve)`: a provider that changes its mind.

        The lifetimes of the stream are then occurrence time: from when to when the provider held that opinion. With
        `statements`, each row holds from its start until the next row about the same event.
        """
        plan = self.plan
        if statements:
            check_columns([id], self.schema, "versions()")
            plan = self.inserts().clip(self, on=id).plan
        return Stream(versions(plan, id, vs, ve))

    def alter_lifetime(
        self,
        start: pl.Expr | None = None,
        duration: pl.Expr | Duration | None = None,
        progress: pl.Expr | None = None,
    ) -> "Stream":
        """`[start, start + duration)`, from expressions of the columns `vs`, `ve` and `length`.

        Left out, start and length stay as they are. `start` may use `vs` only and must not decrease with it; the
        length must not grow when `ve` shrinks. For an event without end `ve` and `length` are infinite, as floating
        point numbers are: `length * 3` stays infinite, and `min_horizontal("length", 10)` is 10.

        `progress` says, as an expression of `t`, before which time nothing of the result changes any more once
        nothing of the input changes before t. It is needed only when both can change: the length depends on `ve`, and
        the stream may correct ends.
        """
        text = f"alter_lifetime(start={start}, duration={duration})"
        changing = duration is None or isinstance(duration, pl.Expr)
        if progress is None and changing and not properties(self.plan).insert_only:
            raise QueryError(
                f"{text}: the stream may correct ends and the new length depends on them, so how far the result has "
                'come cannot be told; give progress, an expression of "t", or use sliding, moving or shift'
            )
        functions = start_function(start, text), length_function(duration, text)
        return Stream(nodes.AlterLifetime(self.plan, *functions, progress_function(progress, start, text), text))

    def chop(self, period: Duration, offset: Duration = 0, zone: str | None = None) -> "Stream":
        """Lifetimes cut at the points of a grid; with a zone, at the beginnings of its days, weeks or months."""
        if zone is not None:
            grid = calendar(period, period, offset, zone, "chop")
            return Stream(nodes.Chop(self.plan, grid.usual, grid.offset, grid))
        check_no_months("chop", period)
        return Stream(
            nodes.Chop(self.plan, duration(period, "chop: period"), duration(offset, "chop: offset", least=0))
        )

    def session(self, timeout: Duration, by: Columns = ()) -> "Stream":
        """Events whose starts follow each other by less than `timeout` share one lifetime, from first to last."""
        return Stream(nodes.Session(self.plan, duration(timeout, "session: timeout"), column_names(by, "session: by")))

    def clip(
        self,
        other: "Stream",
        on: Columns | None = None,
        *,
        left_on: Columns | None = None,
        right_on: Columns | None = None,
    ) -> "Stream":
        """Events end when a matching event of the other stream starts."""
        return Stream(nodes.Clip(self.plan, plan_of(other, "clip"), *keys("clip", on, left_on, right_on)))

    # --- several streams -----------------------------------------------------------------------------------------

    def join(
        self,
        other: "Stream",
        on: Columns | None = None,
        *,
        left_on: Columns | None = None,
        right_on: Columns | None = None,
        how: How = "inner",
        where: Expressions | None = None,
        suffix: str = "_right",
    ) -> "Stream":
        """Pairs of events with equal keys, for which `where` holds, during the time both live.

        `how` is inner, left, full, semi or anti. `where` sees the columns of both; those of the other stream that
        have the name of one of ours get the suffix, and its keys are not repeated.
        """
        left, right = keys("join", on, left_on, right_on)
        residual = None if where is None else as_expression(where, "join")
        return Stream(nodes.Join(self.plan, plan_of(other, "join"), left, right, how, residual, suffix))

    def union(self, *others: "Stream") -> "Stream":
        """All events of all streams."""
        return Stream(nodes.Union((self.plan, *(plan_of(o, "union") for o in others))))

    def merge(self, *others: "Stream", policy: Policy | str = "first", algorithm: str | None = None) -> "Stream":
        """This stream and others that tell the same history, as one that is never behind the fastest of them.

        `policy` says how early events are told: first, reflect, leader, fraction or half-frozen; or a `Policy`, which
        also says how early progress is. `algorithm` is R0 to R4; by default what is known of the streams decides.
        """
        members = (self.plan, *(plan_of(o, "merge") for o in others))
        return Stream(nodes.Merge(members, as_policy(policy), algorithm))

    def merge_by(
        self,
        column: str,
        *,
        join: str | None = None,
        policy: Policy | str = "first",
        algorithm: str | None = None,
        wrong: Wrong = "raise",
    ) -> "Stream":
        """The one history that copies in this stream tell, each row saying in `column` which copy it belongs to.

        Copies may come and go. `join` is a column with the time from which on a copy is complete: of the copies of one
        name the one with the latest counts, and INF says that a name is over. A copy's progress is told by
        punctuations about it. `wrong="detach"` goes on without a copy that contradicts the others.
        """
        return Stream(nodes.MergeBy(self.plan, column, join, as_policy(policy), algorithm, wrong))

    def difference(self, other: "Stream", by: Columns | None = None) -> "Stream":
        """At each instant what this stream has more often than the other; with keys, what has no partner there."""
        if by is not None:
            by = column_names(by, "difference: by")
            return Stream(nodes.Join(self.plan, plan_of(other, "difference"), by, by, "anti"))
        return Stream(nodes.Difference(self.plan, plan_of(other, "difference")))

    def intersect(self, other: "Stream") -> "Stream":
        """At each instant the payloads both streams have, each once."""
        return Stream(nodes.Intersect(self.plan, plan_of(other, "intersect")))

    def distinct(self) -> "Stream":
        """At each instant every payload once."""
        return Stream(nodes.Distinct(self.plan))

    def coalesce(self) -> "Stream":
        """The same table at every instant, in the fewest and longest events."""
        return Stream(nodes.Coalesce(self.plan))

    def iterate(
        self,
        body: "Callable[[Stream], Stream]",
        *,
        progress: Progress = "hybrid",
        most: int = MOST,
        turns: int = TURNS,
    ) -> "Stream":
        """This stream and all that `body` derives from it, again and again, until nothing new is derived.

            hops = links.select(via="start", to="end")
            links.iterate(lambda paths: paths.join(hops, left_on="end", right_on="via").select("start", end="to"))

        `body` gets the loop as a stream, and may use other streams. It must yield the columns of this one. At each
        instant the result is the least set that contains this stream and what the body derives from the result. A body
        that ends with `group_by(..).agg(x=cedr.min("x"))`, max or `top_k(1, ..)` keeps the best row of each group.

        progress   how it is found how far the loop has come: hybrid, hwm or probing
        most       a loop that is not at rest after so many turns is stopped with an error
        turns      at most so many turns after each chunk of input; what still circulates goes on with the next
        """
        if not callable(body):
            raise QueryError(f"iterate: body is a {type(body).__name__}; it must be a function of the loop's stream")
        loop = loop_of(self.plan)
        derived = plan_of(body(Stream(loop)), "iterate: body")
        return Stream(iterate(self.plan, loop, derived, Settings(progress, most, turns)))

    # --- snapshots -----------------------------------------------------------------------------------------------

    def group_by(self, *columns: str, **named: pl.Expr) -> "GroupedStream":
        """Groups by columns, or by named expressions of them."""
        stream = self.with_columns(**named) if named else self
        by = (*(name for c in columns for name in column_names(c, "group_by")), *named)
        check_columns(by, stream.schema, f"group_by({', '.join(map(repr, by))})")
        return GroupedStream(stream, by)

    def agg(self, **aggregates: Any) -> "Stream":
        """One row per snapshot of the whole stream: `agg(n=cedr.count(), load=cedr.avg("load"))`."""
        return GroupedStream(self, ()).agg(**aggregates)

    def top_k(
        self, k: int, by: Columns, *, descending: bool | Sequence[bool] = True, rank: str | None = None
    ) -> "Stream":
        """Of each snapshot the k rows that come first by these columns; missing values last, ties by payload."""
        return GroupedStream(self, ()).top_k(k, by, descending=descending, rank=rank)

    def sort(self, *by: str, descending: bool | Sequence[bool] = False) -> "Stream":
        """Events in the order of these columns: told once nothing more can come that belongs before them.

        That takes punctuations about the first column, from the end where the order begins; else all wait for the end
        of the stream. Missing values come last. What is told has its final end and never changes.
        """
        columns = tuple(name for c in by for name in column_names(c, "sort"))
        return Stream(nodes.Sort(self.plan, columns, directions("sort", columns, descending)))

    # --- consistency ---------------------------------------------------------------------------------------------

    def with_consistency(
        self,
        level: Consistency | Literal["strong", "middle", "weak"] | None = None,
        *,
        block: Duration | None = None,
        remember: Duration | None = None,
        flavour: Flavour | None = None,
    ) -> "Stream":
        """How long the query up to here may wait (`block`) and how long it repairs (`remember`).

        A level by name, a `Consistency`, or the two lengths of time. Said several times, the last word counts.
        """
        return Stream(nodes.Level(self.plan, as_level(level, block, remember), None, flavour))

    def with_latency(self, latency: Latency) -> "Stream":
        """How early operators speak: `perfect` (ends known), `ordered` (starts known) or `eager`."""
        if latency not in get_args(Latency):
            raise QueryError(f"with_latency({latency!r}): it is one of {', '.join(get_args(Latency))}")
        return Stream(nodes.Level(self.plan, None, latency, None))

    def align(
        self,
        block: Duration = "inf",
        flavour: Flavour = "ordered",
        clock: Callable[[], int] | None = None,
    ) -> "Stream":
        """Hold events back for up to `block`, here; `with_consistency` does it where it is needed."""
        return Stream(nodes.Align(self.plan, duration(block, "align: block", least=0), flavour, clock))

    def finalize(self, remember: Duration = "inf", late: Literal["collect", "raise"] = "collect") -> "Stream":
        """Check promises and forget what is older than `remember`, here; `with_consistency` does it where needed."""
        return Stream(nodes.Finalize(self.plan, duration(remember, "finalize: remember", least=0), late))

    # --- running -------------------------------------------------------------------------------------------------

    def fragment(self, rules: tuple[Rule, ...] = RULES) -> Fragment:
        """The operators that run this query."""
        return fragment_of(nodes.Level(self.plan), rules)

    def engine(self) -> Engine:
        """An engine to push chunks into."""
        return Engine(self.fragment())

    def run(self, data: Any, *, chunk_size: int = local.CHUNK_SIZE, close: bool = True) -> Result:
        """The answer to data at hand: a table, elements, or for several sources a mapping by name.

        `close` says at the end that nothing more comes. The data go through in chunks of `chunk_size` rows.
        """
        return local.run(self.fragment(), data, chunk_size=chunk_size, close=close)

    def updates(self, data: Any, *, chunk_size: int = local.CHUNK_SIZE, close: bool = True) -> Iterator[Result]:
        """A result after each chunk. `data` may also be an iterator of tables, which may never end.

        Of such a one it is told with a `CedrWarning` when results will never come, or state will grow for ever.
        """
        if isinstance(data, Iterator) and length_hint(data, -1) < 0:
            from cedr.plan.analysis.warning import warn_of_findings

            warn_of_findings(nodes.Level(self.plan), stacklevel=2)
        return local.updates(self.fragment(), data, chunk_size=chunk_size, close=close)

    def why(self, data: Any, match: Mapping[str, Any] | None = None, /, vs: Any = None, **columns: Any) -> "Why":
        """Which events made a match of this pattern: `alerts.why(rows, machine="web1")`.

        The match is named by values of its columns, its start, or both. `match` is a row of the answer, such as
        `table.row(0, named=True)`, or a part of one. Prints as a text; `.contributors` is a frame of the events.
        """
        from cedr.lineage.why import why

        times, values = parted(match or {}, self.schema)
        start = chronon(times["vs"] if vs is None and "vs" in times else vs, "why: vs")
        end = INF if times.get("ve", 0) is None else chronon(times.get("ve"), "why: ve")
        return why(self.plan, data, {**values, **columns}, start, end)

    def why_not(self, data: Any, /, **events: Mapping[str, Any]) -> "WhyNot":
        """Why some events are no match of this pattern: `alerts.why_not(rows, x={"machine": "web1", "vs": 5})`.

        Events are named by the variables of the pattern, and described by their attributes and their start. Prints as
        a text; `.reasons` says the same as data.
        """
        from cedr.lineage.why_not import why_not

        return why_not(self.plan, data, events)

    def start(
        self,
        spark: "SparkSession",
        data: Any,
        *,
        sink: "TableSink | Changelog",
        checkpoint: str,
        trigger: Mapping[str, Any] | None = None,
        close: bool = False,
        late: str | None = None,
        shards: int | None = None,
        name: str | None = None,
    ) -> "RunningQuery":
        """Run on Spark, as a stream: what arrives is worked in by micro-batches, and the sink kept up to date.

        data         a streaming DataFrame or `cedr.files(...)`; for several sources a mapping by name
        sink         where the answer goes: one of `cedr.sinks`
        checkpoint   a folder for this query's state; start again with the same one to go on where it stopped
        trigger      Spark's words for when a micro-batch begins: `{"processingTime": "5 seconds"}`, or
                     `{"availableNow": True}` to work in what is there and end
        close        with `availableNow`: say at the end that nothing more comes, so that every result is told
        late         a folder for rows that could not be used; by default one below the checkpoint
        shards       how many parts the work is cut into; by default as many as Spark has cores. Fixed at first start
        """
        from cedr.runtime.spark.driver.streaming import start

        return start(
            nodes.Level(self.plan),
            spark,
            data,
            sink=sink,
            checkpoint=checkpoint,
            trigger=trigger,
            close=close,
            late=late,
            shards=shards,
            name=name,
        )

    def batch(
        self, spark: "SparkSession", data: Any, *, late: str | None = None, shards: int | None = None
    ) -> "DataFrame":
        """Run on Spark over static DataFrames: the canonical table, as a DataFrame of `vs`, `ve` and the payload.

        Rows that cannot be used are an error, unless `late` names a folder to write them to.
        """
        from cedr.runtime.spark.driver.batch import batch

        return batch(nodes.Level(self.plan), spark, data, late=late, shards=shards)

    def change_level(
        self, engine: Engine, level: Consistency | Literal["strong", "middle", "weak"] | None = None, **knobs: Duration
    ) -> Chunk:
        """Let a running engine of this query go on at another level; see `Engine.set_consistency`."""
        consistency = as_level(level, knobs.get("block"), knobs.get("remember"))
        if consistency is None:
            raise QueryError("change_level needs a level, such as cedr.STRONG")
        return engine.set_consistency(consistency)

    def explain(self) -> str:
        """The plan as written, the rules that changed it, the plan that runs, its operators and what they wait for."""
        return Text(explain(nodes.Level(self.plan)))

    def findings(self) -> Findings:
        """Of each operator with state when it emits and what bounds its state, on a stream that never ends.

        A tuple that prints as a text, with a line for each operator.
        """
        return Findings(analyse(optimize(nodes.Level(self.plan)).plan))


class GroupedStream:
    """A stream in groups, on its way to `agg` or `top_k`."""

    def __init__(self, stream: Stream, by: tuple[str, ...]) -> None:
        self.stream, self.by = stream, by

    def agg(self, **aggregates: Any) -> Stream:
        """One row per snapshot of each group: the group's columns, then the aggregates."""
        for name, aggregate in aggregates.items():
            if not hasattr(aggregate, "dtype") or not hasattr(aggregate, "columns"):
                shown = show_expression(aggregate) if isinstance(aggregate, pl.Expr) else repr(aggregate)
                raise QueryError(f'agg({name}={shown}): not an aggregate; use for example cedr.avg("load")')
        return Stream(nodes.Aggregate(self.stream.plan, self.by, tuple(aggregates.items())))

    def top_k(
        self, k: int, by: Columns, *, descending: bool | Sequence[bool] = True, rank: str | None = None
    ) -> Stream:
        """Of each snapshot of each group the k rows that come first by these columns.

        Missing values come last, whether descending or not; NaN is greater than any number; ties by payload.
        """
        order = column_names(by, "top_k: by")
        down = directions("top_k", order, descending)
        return Stream(nodes.TopK(self.stream.plan, k, order, down, self.by, rank))


# --- what users write, as what nodes take --------------------------------------------------------------------------


def as_expression(value: Any, what: str) -> pl.Expr:
    if isinstance(value, pl.Expr):
        return value
    if isinstance(value, str):
        try:
            return pl.sql_expr(value)
        except PolarsError as e:
            raise QueryError(f"{what}({value!r}): {first_line(e)}") from None
    if isinstance(value, bool):
        return pl.lit(value)
    raise QueryError(
        f'{what}: {value!r} is a {type(value).__name__}; write a polars expression, such as pl.col("load") > 0.9'
    )


def as_columns(expressions: Sequence[Any], named: dict[str, Any]) -> list[pl.Expr]:
    """Names are columns, other values literals; keywords name the result."""
    flat = [e for group in expressions for e in (group if isinstance(group, list | tuple) else [group])]
    wanted = [pl.col(e) if isinstance(e, str) else as_value(e) for e in flat]
    return wanted + [(pl.col(e) if isinstance(e, str) else as_value(e)).alias(name) for name, e in named.items()]


def as_value(value: Any) -> pl.Expr:
    return value if isinstance(value, pl.Expr) else pl.lit(value)


def keys(
    what: str, on: Columns | None, left_on: Columns | None, right_on: Columns | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if on is not None and (left_on is not None or right_on is not None):
        raise QueryError(f"{what}: give on, or left_on and right_on, not both")
    if (left_on is None) != (right_on is None):
        raise QueryError(f"{what}: left_on and right_on go together")
    if on is not None:
        both = column_names(on, f"{what}: on")
        return both, both
    left, right = (() if side is None else side for side in (left_on, right_on))
    return column_names(left, f"{what}: left_on"), column_names(right, f"{what}: right_on")


def plan_of(other: Any, what: str) -> Node:
    if not isinstance(other, Stream):
        raise QueryError(f"{what}: the other side is a {type(other).__name__}; it must be a stream")
    return other.plan


EVER = (MIN, INF)


def interval(times: Times | None, what: str) -> tuple[int, int]:
    """The two ends as chronons."""
    if times is None:
        return EVER
    if not isinstance(times, tuple) or len(times) != 2:
        raise QueryError(f"{what} is {times!r}; it must be a pair of times, such as (10, 20) or (None, 20)")
    start, end = (chronon(time, what) for time in times)
    return MIN if start is None else start, INF if end is None else end


def parted(row: Mapping[str, Any], schema: Schema) -> tuple[dict[str, Any], dict[str, Any]]:
    """The times of a row of an answer, by `vs` and `ve`, and the rest. A payload with such a name has its own."""
    own = {f"_{name}" if name in schema else name: name for name in ("vs", "ve")}
    return {own[n]: v for n, v in row.items() if n in own}, {n: v for n, v in row.items() if n not in own}


def chronon(time: int | datetime | None, what: str) -> int | None:
    """Timestamps without a zone are as in tables without one."""
    if isinstance(time, datetime):
        moment = time if time.tzinfo else time.replace(tzinfo=UTC)
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return None if time is None else as_time(time, what)


def as_level(level: Consistency | str | None, block: Duration | None, remember: Duration | None) -> Consistency | None:
    if level is not None and (block is not None or remember is not None):
        raise QueryError("give a level, or block and remember, not both")
    if isinstance(level, Consistency):
        return level
    if isinstance(level, str):
        if level.lower() not in LEVELS:
            raise QueryError(f"there is no level {level!r}; levels are {', '.join(LEVELS)}, or give block and remember")
        return LEVELS[level.lower()]
    if level is not None:
        raise QueryError(f"{level!r} is no level; use cedr.STRONG, cedr.MIDDLE, cedr.WEAK, a name, or cedr.Consistency")
    if block is None and remember is None:
        return None
    return Consistency(
        0 if block is None else duration(block, "block", least=0),
        MIDDLE.remember if remember is None else duration(remember, "remember", least=0),
    )


def directions(what: str, order: tuple[str, ...], descending: bool | Sequence[bool]) -> tuple[bool, ...]:
    """For each column to order by whether from the greatest down."""
    found = (descending,) * len(order) if isinstance(descending, bool) else tuple(descending)
    if len(found) != len(order):
        raise QueryError(f"{what}: {len(order)} columns to order by, but {len(found)} values of descending")
    return found
