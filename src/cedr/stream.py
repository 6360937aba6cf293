"""Streams: the public API for queries, one method per operator.

Streams are immutable; each method returns a new one and checks names, types and keys at once. Nothing runs before
`run`, `updates`, `engine`, `start` or `batch`.

    busy = feed.where(pl.col("load") > 0.9).sliding("60s").group_by("machine").agg(n=cedr.count())
    busy.run(table).table()
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import length_hint
from typing import TYPE_CHECKING, Any, Literal, get_args

import polars as pl

from cedr.arguments import (
    EVER,
    Columns,
    Expressions,
    Times,
    as_chronon,
    as_columns,
    as_expression,
    as_interval,
    as_level,
    directions,
    join_keys,
    loop_settings,
    split_times,
)
from cedr.columnar.chunk import Chunk
from cedr.columnar.mapped import LOCAL, MEMORY, limit_of
from cedr.plan import nodes
from cedr.plan.analysis import Findings, analyse
from cedr.plan.explain import explain
from cedr.plan.fragment import Fragment, fragment_of
from cedr.plan.iteration import iterate, loop_of
from cedr.plan.latency import Latency
from cedr.plan.lifetime_expressions import length_function, progress_function, start_function
from cedr.plan.loop import ITERATIONS_PER_CHUNK, MAX_ITERATIONS, Progress
from cedr.plan.merge_policy import Policy, Wrong, as_policy
from cedr.plan.node import Node
from cedr.plan.nodes.align import Flavour
from cedr.plan.nodes.join import How
from cedr.plan.nodes.project import keep, project
from cedr.plan.notebook import plan_html, plan_rich
from cedr.plan.optimizer import RULES, Rule, optimize
from cedr.plan.properties import properties
from cedr.plan.schema import Schema, check_columns, column_names, show_expression, show_schema
from cedr.plan.versions import contains_versions, valid_during, versions
from cedr.runtime import local
from cedr.runtime.engine import Engine
from cedr.runtime.result import Result
from cedr.temporal.calendar import calendar, check_no_months
from cedr.temporal.consistency import Consistency
from cedr.temporal.duration import Duration, duration
from cedr.temporal.errors import QueryError
from cedr.temporal.notebook import DisplayText
from cedr.temporal.time import INF
from cedr.temporal.time import show as show_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cedr.lineage.why import Why
    from cedr.lineage.why_not import WhyNot
    from cedr.runtime.spark.driver.streaming import RunningQuery
    from cedr.sinks.base import TableSink
    from cedr.sinks.changelog_rows import Changelog


class Stream:
    """A query over events with lifetimes, made by `cedr.source` and `cedr.query`.

    Every method returns a new stream. Nothing runs before `run`, `updates`, `start` or `batch`.
    """

    def __init__(self, plan: Node) -> None:
        plan.schema  # noqa: B018 computing it checks the node
        self.plan = plan

    def __repr__(self) -> str:
        return f"Stream({show_schema(self.schema)})"

    def _repr_html_(self) -> str:
        return plan_html(self.plan)

    def __rich__(self) -> Any:
        return plan_rich(self.plan)

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
        """A payload of these columns and expressions."""
        columns = as_columns(expressions, named)
        if not columns:
            raise QueryError('select() needs columns or expressions, such as select("machine", load=pl.col("l") / 100)')
        return Stream(project(self.plan, columns))

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
        """Each event counts for `length` from its start on, but not beyond its own end."""
        return Stream(nodes.Moving(self.plan, duration(length, "moving: length")))

    def hopping(self, size: Duration, hop: Duration, offset: Duration = 0, zone: str | None = None) -> "Stream":
        """Windows of `size`, one every `hop`. With a zone, both are days, weeks, months or years of that calendar."""
        if zone is not None:
            grid = calendar(size, hop, offset, zone, "hopping")
            return Stream(nodes.Hopping(self.plan, grid.cells * grid.usual, grid.usual, grid.offset, grid))
        check_no_months("hopping", size, hop)
        lengths = duration(size, "hopping: size"), duration(hop, "hopping: hop")
        return Stream(nodes.Hopping(self.plan, *lengths, duration(offset, "hopping: offset", least=0)))

    def tumbling(self, size: Duration, offset: Duration = 0, zone: str | None = None) -> "Stream":
        """Adjacent windows of `size`. With a zone, they are days, weeks, months or years of that calendar:
        `tumbling("1 day", zone="Europe/Berlin")` lasts from midnight to midnight in Berlin. Weeks begin on Monday;
        `offset` delays the start of every window."""
        if zone is not None:
            grid = calendar(size, size, offset, zone, "tumbling")
            return Stream(nodes.Hopping(self.plan, grid.usual, grid.usual, grid.offset, grid))
        check_no_months("tumbling", size)
        length = duration(size, "tumbling: size")
        return Stream(nodes.Hopping(self.plan, length, length, duration(offset, "tumbling: offset", least=0)))

    def inserts(self) -> "Stream":
        """Each event counts forever from its start on."""
        return Stream(nodes.Inserts(self.plan))

    def deletes(self) -> "Stream":
        """Each event counts forever from its end on."""
        return Stream(nodes.Deletes(self.plan))

    def shift(self, by: Duration) -> "Stream":
        """Lifetimes moved by a duration; whole numbers may be negative."""
        return Stream(nodes.Shift(self.plan, duration(by, "shift: by", least=-(2**62))))

    def slice(self, occurrence: Times | None = None, valid: Times | None = None) -> "Stream":
        """Events that overlap an interval, cut to it: `slice((start, end))`; None leaves a side open.

        `occurrence` is `@` in the language, `valid` is `#`. Most streams have one time axis, and both cut it. In a
        stream of `versions`, `valid` cuts the lifetimes inside the versions.
        """
        if occurrence is None and valid is None:
            raise QueryError("slice() needs an interval, such as slice(occurrence=(10, 20))")
        axis, inner = as_interval(occurrence, "slice: occurrence"), as_interval(valid, "slice: valid")
        if not contains_versions(self.plan):
            axis, inner = (max(axis[0], inner[0]), min(axis[1], inner[1])), EVER
        for start, end in (axis, inner):
            if start >= end:
                raise QueryError(
                    f"slice: [{show_time(start)}, {show_time(end)}) is empty; the start must be before the end"
                )
        plan = self.plan if inner == EVER else valid_during(self.plan, *inner)
        return Stream(plan if axis == EVER else nodes.Slice(plan, *axis))

    def versions(self, id: str = "id", vs: str = "vs", ve: str = "ve", *, statements: bool = False) -> "Stream":
        """Rows stating that event `id` is valid during `[vs, ve)`, from a provider that may revise its statements.

        The lifetimes of the stream are occurrence time: the period during which the provider's statement held. With
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

        By default start and length do not change. `start` may use only `vs` and must not decrease with it; the
        length must not grow when `ve` shrinks. For an event without an end, `ve` and `length` are infinite like
        floating point infinity: `length * 3` stays infinite, and `min_horizontal("length", 10)` is 10.

        `progress` is an expression of `t`: the time before which the result is final once the input is final before
        `t`. It is required only if the length depends on `ve` and the stream may correct ends.
        """
        text = f"alter_lifetime(start={start}, duration={duration})"
        changing = duration is None or isinstance(duration, pl.Expr)
        if progress is None and changing and not properties(self.plan).insert_only:
            raise QueryError(
                f"{text}: the stream may correct ends and the new length depends on them, so the progress of the "
                'result is unknown; give progress, an expression of "t", or use sliding, moving or shift'
            )
        functions = start_function(start, text), length_function(duration, text)
        return Stream(nodes.AlterLifetime(self.plan, *functions, progress_function(progress, start, text), text))

    def chop(self, period: Duration, offset: Duration = 0, zone: str | None = None) -> "Stream":
        """Lifetimes cut at the points of a grid; with a zone, at the start of its days, weeks or months."""
        if zone is not None:
            grid = calendar(period, period, offset, zone, "chop")
            return Stream(nodes.Chop(self.plan, grid.usual, grid.offset, grid))
        check_no_months("chop", period)
        return Stream(
            nodes.Chop(self.plan, duration(period, "chop: period"), duration(offset, "chop: offset", least=0))
        )

    def session(self, timeout: Duration, by: Columns = ()) -> "Stream":
        """Events whose starts are less than `timeout` apart share one lifetime, from the first to the last of them."""
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
        return Stream(nodes.Clip(self.plan, plan_of(other, "clip"), *join_keys("clip", on, left_on, right_on)))

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
        """Pairs of events with equal keys for which `where` holds, while both are alive.

        `how` is inner, left, full, semi or anti. `where` may use the columns of both. Columns of the other stream
        whose names exist in this one get the suffix; its keys are not repeated.
        """
        left, right = join_keys("join", on, left_on, right_on)
        residual = None if where is None else as_expression(where, "join")
        return Stream(nodes.Join(self.plan, plan_of(other, "join"), left, right, how, residual, suffix))

    def union(self, *others: "Stream") -> "Stream":
        """All events of all streams."""
        return Stream(nodes.Union((self.plan, *(plan_of(o, "union") for o in others))))

    def merge(self, *others: "Stream", policy: Policy | str = "first", algorithm: str | None = None) -> "Stream":
        """This stream and other copies of the same history, as one stream that is as fast as the fastest copy.

        `policy` decides how early events are emitted: first, reflect, leader, fraction or half-frozen; or a `Policy`,
        which also decides how early progress is. `algorithm` is R0 to R4; by default the properties of the streams
        decide.
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
        """Merge copies of one history that arrive in this stream; `column` names the copy each row belongs to.

        Copies may appear and disappear. `join` is a column with the time from which a copy is complete: among copies
        of the same name the latest one counts, and INF ends a name. Punctuations about a copy report its progress.
        `wrong="detach"` continues without a copy that contradicts the others.
        """
        return Stream(nodes.MergeBy(self.plan, column, join, as_policy(policy), algorithm, wrong))

    def difference(self, other: "Stream", by: Columns | None = None) -> "Stream":
        """At each instant the rows that occur more often here than in the other stream; with `by`, the rows that
        have no partner in it."""
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
        max_iterations: int = MAX_ITERATIONS,
        iterations_per_chunk: int = ITERATIONS_PER_CHUNK,
        **renamed: int,
    ) -> "Stream":
        """This stream and all rows that `body` derives from it repeatedly, until it derives nothing new.

            hops = links.select(via="start", to="end")
            links.iterate(lambda paths: paths.join(hops, left_on="end", right_on="via").select("start", end="to"))

        `body` is a function of the loop's stream, and may use other streams. It must return the columns of this one.
        At each instant the result is the least set that contains this stream and what the body derives from the
        result. A body that ends with `group_by(..).agg(x=cedr.min("x"))`, max or `top_k(1, ..)` keeps the best row of
        each group.

        progress               how the progress of the loop is determined: hybrid, hwm or probing
        max_iterations         the number of iterations after which a loop that still derives rows fails
        iterations_per_chunk   the maximum number of iterations after each chunk of input; rows that still circulate
                               continue with the next chunk
        """
        settings = loop_settings(progress, max_iterations, iterations_per_chunk, renamed)
        if not callable(body):
            raise QueryError(f"iterate: body is a {type(body).__name__}; it must be a function of the loop's stream")
        loop = loop_of(self.plan)
        derived = plan_of(body(Stream(loop)), "iterate: body")
        return Stream(iterate(self.plan, loop, derived, settings))

    # --- snapshots -----------------------------------------------------------------------------------------------

    def group_by(self, *columns: str, **named: pl.Expr) -> "GroupedStream":
        """Groups by columns, or by named expressions of them."""
        stream = self.with_columns(**named) if named else self
        by = (*(name for c in columns for name in column_names(c, "group_by")), *named)
        check_columns(by, stream.schema, f"group_by({', '.join(map(repr, by))})")
        return GroupedStream(stream, by)

    def agg(self, **aggregates: Any) -> "Stream":
        """One row for each snapshot of the whole stream: `agg(n=cedr.count(), load=cedr.avg("load"))`."""
        return GroupedStream(self, ()).agg(**aggregates)

    def top_k(
        self, k: int, by: Columns, *, descending: bool | Sequence[bool] = True, rank: str | None = None
    ) -> "Stream":
        """The first k rows of each snapshot in the order of these columns; missing values last, ties by payload."""
        return GroupedStream(self, ()).top_k(k, by, descending=descending, rank=rank)

    def sort(self, *by: str, descending: bool | Sequence[bool] = False) -> "Stream":
        """Events in the order of these columns. An event is emitted once no earlier one can follow.

        This requires punctuations about the first column, from the first value of the order on; otherwise all events
        wait for the end of the stream. Missing values come last. Emitted events are final.
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
        """Set how long the query up to here may wait (`block`) and for how long it repairs results (`remember`).

        Pass the name of a level, a `Consistency`, or both durations. The last call counts.
        """
        return Stream(nodes.Level(self.plan, as_level(level, block, remember), None, flavour))

    def with_latency(self, latency: Latency) -> "Stream":
        """How early operators emit: `perfect` (ends are known), `ordered` (starts are known) or `eager`."""
        if latency not in get_args(Latency):
            raise QueryError(f"with_latency({latency!r}): it is one of {', '.join(get_args(Latency))}")
        return Stream(nodes.Level(self.plan, None, latency, None))

    def align(
        self,
        block: Duration = "inf",
        flavour: Flavour = "ordered",
        clock: Callable[[], int] | None = None,
    ) -> "Stream":
        """Hold events back for up to `block` at this point; `with_consistency` places this where it is needed."""
        return Stream(nodes.Align(self.plan, duration(block, "align: block", least=0), flavour, clock))

    def finalize(self, remember: Duration = "inf", late: Literal["collect", "raise"] = "collect") -> "Stream":
        """Check promises and drop state older than `remember` at this point; `with_consistency` places this where it
        is needed."""
        return Stream(nodes.Finalize(self.plan, duration(remember, "finalize: remember", least=0), late))

    # --- running -------------------------------------------------------------------------------------------------

    def fragment(self, rules: tuple[Rule, ...] = RULES) -> Fragment:
        """The operators that run this query."""
        return fragment_of(nodes.Level(self.plan), rules)

    def engine(self, *, state_memory: str | int | None = None) -> Engine:
        """An engine that takes chunks of input and returns chunks of output. `state_memory`: see `run`."""
        MEMORY.allow(LOCAL, limit_of(state_memory))
        return Engine(self.fragment())

    def run(
        self,
        data: Any,
        *,
        chunk_size: int = local.CHUNK_SIZE,
        close: bool = True,
        state_memory: str | int | None = None,
    ) -> Result:
        """Run over data in memory: a table, elements, or for several sources a mapping by name.

        The data are processed in chunks of `chunk_size` rows. `close` ends the stream after the last one.
        `state_memory`: how much memory state may take, "1g", "512m" or bytes; larger state goes to temporary files. By
        default half of the memory of this machine. It holds for all queries that run in this process.
        """
        MEMORY.allow(LOCAL, limit_of(state_memory))
        return local.run(self.fragment(), data, chunk_size=chunk_size, close=close)

    def updates(
        self,
        data: Any,
        *,
        chunk_size: int = local.CHUNK_SIZE,
        close: bool = True,
        state_memory: str | int | None = None,
    ) -> Iterator[Result]:
        """A result after each chunk. `data` may also be an endless iterator of tables. `state_memory`: see `run`.

        For an iterator, a `CedrWarning` reports operators that would never emit or whose state would grow forever.
        """
        if isinstance(data, Iterator) and length_hint(data, -1) < 0:
            from cedr.plan.analysis.warning import warn_of_findings

            warn_of_findings(nodes.Level(self.plan), stacklevel=2)
        MEMORY.allow(LOCAL, limit_of(state_memory))
        return local.updates(self.fragment(), data, chunk_size=chunk_size, close=close)

    def why(self, data: Any, match: Mapping[str, Any] | None = None, /, vs: Any = None, **columns: Any) -> "Why":
        """The events that made a match of this pattern: `alerts.why(rows, machine="web1")`.

        Identify the match by values of its columns, its start, or both. `match` is a row of the result, such as
        `table.row(0, named=True)`, or a part of one. Prints as text; `.contributors` is a frame of the events.
        """
        from cedr.lineage.why import why

        times, values = split_times(match or {}, self.schema)
        start = as_chronon(times["vs"] if vs is None and "vs" in times else vs, "why: vs")
        end = INF if times.get("ve", 0) is None else as_chronon(times.get("ve"), "why: ve")
        return why(self.plan, data, {**values, **columns}, start, end)

    def why_not(self, data: Any, /, **events: Mapping[str, Any]) -> "WhyNot":
        """Why some events do not match this pattern: `alerts.why_not(rows, x={"machine": "web1", "vs": 5})`.

        Events are given by the variables of the pattern, and identified by their attributes and their start. Prints as
        text; `.reasons` is the same as data.
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
        state_memory: str | int | None = None,
        name: str | None = None,
        upgrade: bool = False,
    ) -> "RunningQuery":
        """Run on Spark as a stream: process input in micro-batches and keep the sink up to date.

        data         a streaming DataFrame or `cedr.files(...)`; for several sources a mapping by name
        sink         where the result goes: one of `cedr.sinks`
        checkpoint   a folder for this query's state; start again with the same folder to continue
        trigger      Spark's trigger for micro-batches: `{"processingTime": "5 seconds"}`, or `{"availableNow": True}`
                     to process all available input and stop
        close        with `availableNow`: end the stream after the input, so that every result is emitted
        late         a folder for rows that could not be used; by default a folder below the checkpoint
        shards       the number of shards; by default that of the last start, at first the number of Spark's cores.
                     Another number than before splits or moves the state
        upgrade      accept that a changed query continues with the rows and results of the one before, and that an
                     empty sink gets results from here on; see docs/upgrading.md
        state_memory how much memory the state of a shard may take: "1g", "512m" or bytes. Larger state goes to
                     temporary files. By default half of the memory of a machine, divided by the shards
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
            state_memory=state_memory,
            name=name,
            upgrade=upgrade,
        )

    def batch(
        self, spark: "SparkSession", data: Any, *, late: str | None = None, shards: int | None = None
    ) -> "DataFrame":
        """Run on Spark over static DataFrames; returns the canonical table: `vs`, `ve` and the payload.

        Rows that cannot be used raise an error, unless `late` names a folder to write them to.
        """
        from cedr.runtime.spark.driver.batch import batch

        return batch(nodes.Level(self.plan), spark, data, late=late, shards=shards)

    def change_level(
        self, engine: Engine, level: Consistency | Literal["strong", "middle", "weak"] | None = None, **knobs: Duration
    ) -> Chunk:
        """Switch a running engine of this query to another level; see `Engine.set_consistency`."""
        consistency = as_level(level, knobs.get("block"), knobs.get("remember"))
        if consistency is None:
            raise QueryError("change_level needs a level, such as cedr.STRONG")
        return engine.set_consistency(consistency)

    def explain(self) -> str:
        """The plan as written, the rules applied, the optimized plan, its operators and what they wait for."""
        return DisplayText(explain(nodes.Level(self.plan)))

    def findings(self) -> Findings:
        """For each operator with state: when it emits and what bounds its state on an endless stream.

        A tuple that prints as text, one line for each operator.
        """
        return Findings(analyse(optimize(nodes.Level(self.plan)).plan))


class GroupedStream:
    """A grouped stream; `agg` or `top_k` makes a stream of it again."""

    def __init__(self, stream: Stream, by: tuple[str, ...]) -> None:
        self.stream, self.by = stream, by

    def agg(self, **aggregates: Any) -> Stream:
        """One row for each snapshot of each group: the columns of the group, then the aggregates."""
        for name, aggregate in aggregates.items():
            if not hasattr(aggregate, "dtype") or not hasattr(aggregate, "columns"):
                text = show_expression(aggregate) if isinstance(aggregate, pl.Expr) else repr(aggregate)
                raise QueryError(f'agg({name}={text}): not an aggregate; use for example cedr.avg("load")')
        return Stream(nodes.Aggregate(self.stream.plan, self.by, tuple(aggregates.items())))

    def top_k(
        self, k: int, by: Columns, *, descending: bool | Sequence[bool] = True, rank: str | None = None
    ) -> Stream:
        """The first k rows of each snapshot of each group in the order of these columns.

        Missing values come last, whether descending or not; NaN is greater than any number; ties by payload.
        """
        order = column_names(by, "top_k: by")
        down = directions("top_k", order, descending)
        return Stream(nodes.TopK(self.stream.plan, k, order, down, self.by, rank))


def plan_of(other: Any, what: str) -> Node:
    if not isinstance(other, Stream):
        raise QueryError(f"{what}: the other side is a {type(other).__name__}; it must be a stream")
    return other.plan
