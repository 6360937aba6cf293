"""`explain`: the plan as written, the rules that fired, the plan that runs, its operators and what they wait for, and
its stages, as plain text.

A tree is printed from the result down, inputs indented below their user. A node with several users is printed once and
numbered, `#1`; the others point to it.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import singledispatch
from itertools import groupby
from typing import Any

from cedr.plan.analysis.findings import Finding, analyse
from cedr.plan.explain_pattern import pattern_lines
from cedr.plan.node import Node, topological
from cedr.plan.nodes import (
    Aggregate,
    Align,
    AlterLifetime,
    Automaton,
    Chop,
    Clip,
    Coalesce,
    Difference,
    Distinct,
    Finalize,
    Fused,
    Hopping,
    Intersect,
    Iterate,
    Join,
    Level,
    Lookup,
    Match,
    Merge,
    MergeBy,
    Moving,
    Places,
    Project,
    Reach,
    Select,
    Session,
    Shift,
    Slice,
    Sliding,
    Sort,
    Source,
    TopK,
)
from cedr.plan.nodes.merge import choose
from cedr.plan.optimizer import RULES, Rule, optimize
from cedr.plan.partitioning import Exchange, in_words, staged
from cedr.plan.physical import Fragment
from cedr.plan.properties import Properties, all_properties
from cedr.plan.schema import show_expression, show_schema
from cedr.temporal.consistency import MIDDLE
from cedr.temporal.duration import show_duration
from cedr.temporal.errors import QueryError
from cedr.temporal.time import show as show_time


def explain(query: Level, rules: tuple[Rule, ...] = RULES) -> str:
    plan, fired = optimize(query, rules)
    known = all_properties(plan)
    sections = {
        "Plan as written": tree(query.input, below=details),
        "Rules that changed it": [f"  {name}" for name in counted(fired)] or ["  none"],
        "Plan that runs": tree(plan, lambda node: f"  -- {known[id(node)]}"),
        "Operators": operators(plan, known),
        "Progress and state": finding_lines(analyse(plan)),
        "On Spark": stages(query, rules),
    }
    return "\n\n".join("\n".join([title, *lines]) for title, lines in sections.items())


def finding_lines(findings: Iterable[Finding]) -> list[str]:
    """What each operator waits for, then once what is missing."""
    found = list(findings)
    missing = dict.fromkeys(text for finding in found for text in finding.missing)
    lines = [f"  {line(finding.node)}: {finding}" for finding in found]
    return lines + [f"  missing: {text}" for text in missing] or ["  nothing waits and nothing is kept"]


def counted(names: Iterable[str]) -> list[str]:
    """Runs of the same name as one line."""
    runs = [(name, len(list(run))) for name, run in groupby(names)]
    return [f"{name} x {n}" if n > 1 else name for name, n in runs]


def tree(
    plan: Node, note: Callable[[Node], str] = lambda node: "", below: Callable[[Node], list[str]] = lambda node: []
) -> list[str]:
    users = Counter(id(i) for node in topological(plan) for i in node.inputs)
    numbers: dict[int, int] = {}
    lines: list[str] = []

    def show(node: Node, depth: int) -> None:
        indent = "  " * depth
        if id(node) in numbers:
            lines.append(f"{indent}see #{numbers[id(node)]}")
            return
        mark = ""
        if users[id(node)] > 1:
            numbers[id(node)] = len(numbers) + 1
            mark = f"#{numbers[id(node)]} "
        lines.append(f"{indent}{mark}{line(node)}{note(node)}")
        lines.extend(f"{indent}  | {detail}" for detail in below(node))
        for i in node.inputs:
            show(i, depth + 1)

    show(plan, 1)
    return lines


@singledispatch
def details(node: Node) -> list[str]:
    """Lines below a node that one line cannot tell."""
    return []


@details.register
def _(node: Match) -> list[str]:
    return pattern_lines(node)


@details.register
def _(node: Iterate) -> list[str]:
    return [text.removeprefix("  ") for text in tree(node.body)]


def operators(plan: Node, known: dict[int, Properties]) -> list[str]:
    """One line per operator in the order in which they are called: what feeds it, and what it remembers."""
    numbers: dict[int, str] = {}
    lines: list[str] = []
    for node in topological(plan):
        if isinstance(node, Source):
            numbers[id(node)] = node.name
            continue
        numbers[id(node)] = str(len(lines))
        feeds = ", ".join(numbers[id(i)] for i in node.inputs)
        lines.append(
            f"  {len(lines)} {type(node).__name__} <- {feeds}: {state(node, [known[id(i)] for i in node.inputs])}"
        )
    return lines or ["  none"]


def stages(query: Level, rules: tuple[Rule, ...]) -> list[str]:
    """Of each stage the rows it takes, where they come from, how they are spread and why; and what it runs."""
    try:
        plan = staged(query, rules)
    except QueryError as e:
        return [f"  not possible: {e}"]
    moves = [(path.exchange, through(path.source, path.fragment)) for path in plan.paths]
    moves += [(exchange, f"stage {stage.number}") for stage in plan.stages for _, exchange in stage.outputs]
    lines: list[str] = []
    for stage in plan.stages:
        lines.append(f"  Stage {stage.number}")
        taken = [(e, origin) for e, origin in moves if e.stage == stage.number]
        lines += [f"    takes {e.name} from {origin}, {where_to(e)}: {e.reason}" for e, origin in taken]
        lines.append(f"    runs {', '.join(step.name for step in stage.fragment.steps) or 'nothing'}")
    return lines


def where_to(exchange: Exchange) -> str:
    return "to every shard" if exchange.everywhere else in_words(exchange.keys)


def through(source: str, fragment: Fragment) -> str:
    return f"{source} through {', '.join(step.name for step in fragment.steps)}" if fragment.steps else source


# --- one line per node ---------------------------------------------------------------------------------------------


@singledispatch
def line(node: Node) -> str:
    return type(node).__name__


@line.register
def _(node: Source) -> str:
    said = {"vs": node.vs, "ve": node.ve, "ve_new": node.ve_new, "cti": node.cti}
    times = "".join(f", {name}={column}" for name, column in said.items() if column)
    per = f", per {', '.join(node.per)}" if node.per else ""
    return f"Source {node.name} ({show_schema(node.schema)}){times}{per}{promises(node.promises)}"


@line.register
def _(node: Select) -> str:
    return f"Select {' and '.join(map(show_expression, node.predicates))}"


@line.register
def _(node: Project) -> str:
    shown = (o.names[0] if o.passes else show_expression(o.expression) for o in node.outputs)
    return f"Project {', '.join(shown)}"


@line.register
def _(node: Sliding) -> str:
    return f"Sliding {show_duration(node.length)}"


@line.register
def _(node: Moving) -> str:
    return f"Moving {show_duration(node.length)}"


@line.register
def _(node: Hopping) -> str:
    offset = f", offset {show_duration(node.offset)}" if node.offset else ""
    if node.calendar is not None:
        return f"{'Tumbling' if node.size == node.hop else 'Hopping'} {node.calendar}{offset}"
    if node.size == node.hop:
        return f"Tumbling {show_duration(node.size)}{offset}"
    return f"Hopping {show_duration(node.size)} every {show_duration(node.hop)}{offset}"


@line.register
def _(node: Shift) -> str:
    return f"Shift by {show_duration(node.by)}"


@line.register
def _(node: Slice) -> str:
    return f"Slice [{show_time(node.start)}, {show_time(node.end)})"


@line.register
def _(node: AlterLifetime) -> str:
    return f"AlterLifetime {node.text.removeprefix('alter_lifetime')}"


@line.register
def _(node: Chop) -> str:
    return f"Chop every {node.calendar or show_duration(node.period)}"


@line.register
def _(node: Session) -> str:
    return f"Session {show_duration(node.timeout)}{by(node.by)}"


@line.register
def _(node: Aggregate) -> str:
    shown = ", ".join(f"{name}={aggregate}" for name, aggregate in node.aggregates)
    return f"{type(node).__name__}{by(node.by)}: {shown}{latency(node.latency)}"


@line.register
def _(node: TopK) -> str:
    rank = f", rank as {node.rank}" if node.rank else ""
    order = in_order(node.order, node.descending)
    return f"{type(node).__name__} {node.k}{by(node.by)} in order of {order}{rank}{latency(node.latency)}"


@line.register
def _(node: Sort) -> str:
    return f"Sort by {in_order(node.by, node.descending)}"


@line.register
def _(node: Join) -> str:
    residual = f" where {show_expression(node.residual)}" if node.residual is not None else ""
    return f"Join {node.how}{on(node)}{residual}{latency(node.latency if node.how != 'inner' else None)}"


@line.register
def _(node: Match) -> str:
    return f"Match{by(node.by)}: {', '.join(name for name, _ in node.outputs)}{latency(node.latency)}"


@line.register
def _(node: Automaton) -> str:
    shape = node.shape
    within = "" if shape.window is None else f", within {show_duration(shape.window)}"
    order = "" if shape.order is None else f", in order of {shape.order}"
    states = "" if shape.final is None else f" to {', '.join(map(str, shape.final))}"
    told = "" if shape.once else f": {shape.start}{states or ', all runs'}"
    return f"Automaton{by(shape.by)}{order}{within}{told}"


@line.register
def _(node: Places) -> str:
    return f"Places{by(node.by)}{'' if node.order is None else f', in order of {node.order}'}"


@line.register
def _(node: Lookup) -> str:
    return f"Lookup of {node.left_on} in {node.table.height} rows"


@line.register
def _(node: Clip) -> str:
    return f"Clip{on(node)}"


@line.register(Distinct)
@line.register(Coalesce)
@line.register(Difference)
@line.register(Intersect)
def _(node: Distinct | Coalesce | Difference | Intersect) -> str:
    return f"{type(node).__name__}{latency(node.latency)}"


@line.register
def _(node: Merge) -> str:
    return f"Merge, {node.policy}"


@line.register
def _(node: MergeBy) -> str:
    join = f", complete from {node.join}" if node.join else ""
    wrong = ", wrong ones detached" if node.wrong == "detach" else ""
    return f"MergeBy {node.column}{join}, {node.policy}{wrong}"


@line.register
def _(node: Iterate) -> str:
    held = f", holds {node.settings.selection}" if node.settings.selection else ""
    return f"Iterate, progress by {node.settings.progress}{held}"


@line.register
def _(node: Reach) -> str:
    return f"Reach from {node.node} over {node.start} to {node.end}"


@line.register
def _(node: Level) -> str:
    words = [str(node.consistency or ""), f"latency {node.latency}" if node.latency else "", node.flavour or ""]
    return f"Level {', '.join(w for w in words if w)}".rstrip()


@line.register
def _(node: Finalize) -> str:
    return f"Finalize, remember {show_duration(node.remember)}"


@line.register
def _(node: Align) -> str:
    clock = ", by the clock" if node.clock else ""
    return f"Align {node.flavour}, block {show_duration(node.block)}{clock}{promises(node.by)}"


@line.register
def _(node: Fused) -> str:
    return f"Fused [{' | '.join(map(line, node.steps))}]"


def promises(schemes: tuple[tuple[str, ...], ...]) -> str:
    return f", promises about {' and about '.join(', '.join(columns) for columns in schemes)}" if schemes else ""


def by(columns: tuple[str, ...]) -> str:
    return f" by {', '.join(columns)}" if columns else ""


def on(node: Join | Clip) -> str:
    pairs = zip(node.left_on, node.right_on, strict=True)
    shown = ", ".join(one if one == two else f"{one} = {two}" for one, two in pairs)
    return f" on {shown}" if shown else ""


def in_order(columns: tuple[str, ...], descending: tuple[bool, ...]) -> str:
    return ", ".join(f"{c} {'desc' if d else 'asc'}" for c, d in zip(columns, descending, strict=True))


def latency(value: str | None) -> str:
    return f" ({value})" if value else ""


# --- what an operator remembers ------------------------------------------------------------------------------------


@singledispatch
def state(node: Node, known: list[Properties]) -> str:
    return "no state"


@state.register(Aggregate)
@state.register(TopK)
def _(node: Any, known: list[Properties]) -> str:
    return bounded("end points and live rows of each group past the CTI", known)


@state.register(Distinct)
@state.register(Coalesce)
@state.register(Difference)
@state.register(Intersect)
def _(node: Any, known: list[Properties]) -> str:
    return bounded("end points of each payload past the CTI", known)


@state.register(Join)
@state.register(Clip)
def _(node: Any, known: list[Properties]) -> str:
    return bounded("rows of each side that live past the other side's CTI", known)


@state.register
def _(node: Merge, known: list[Properties]) -> str:
    algorithm, why = choose(known, node.policy, node.algorithm)
    keeps = {
        "R0": "nothing but the highest start",
        "R1": "how many events each has told at the highest start",
        "R2": "the events at the highest start",
    }
    return f"{algorithm}, as {why}; {keeps.get(algorithm) or bounded('events past the CTI, each once', known)}"


@state.register
def _(node: MergeBy, known: list[Properties]) -> str:
    algorithm, why = node.chosen(known[0])
    return f"{algorithm}, as {why}; {bounded('events past the CTI of the fastest copy, each once', known)}"


@state.register
def _(node: Iterate, known: list[Properties]) -> str:
    return bounded("derivations and what the body remembers, past what is definite", known)


@state.register
def _(node: Places, known: list[Properties]) -> str:
    return bounded("events past the CTI", known)


@state.register
def _(node: Reach, known: list[Properties]) -> str:
    return "all edges and nodes, and of each source how far each node is"


@state.register
def _(node: Match, known: list[Properties]) -> str:
    return "events that may still take part in a match or forbid one: as far before the CTI as the scopes reach"


@state.register
def _(node: Automaton, known: list[Properties]) -> str:
    if node.shape.window is None:
        return bounded("events past the CTI", known[:1])
    return f"events that started within {show_duration(node.shape.window)} before the CTI, or since"


@state.register
def _(node: Session, known: list[Properties]) -> str:
    return (
        f"rows of sessions that may still grow: started within {show_duration(node.timeout)} before the CTI, or since"
    )


@state.register
def _(node: Sort, known: list[Properties]) -> str:
    return f"rows until promises without end cover all values of {node.by[0]} that come before theirs"


@state.register
def _(node: Finalize, known: list[Properties]) -> str:
    forgets = "" if node.remember == MIDDLE.remember else f", at most {show_duration(node.remember)} back"
    if known[0].insert_only:
        return f"no rows, as there are no adjusts{forgets}"
    return bounded(f"live rows that may be adjusted{forgets}", known)


@state.register
def _(node: Align, known: list[Properties]) -> str:
    waits = "until a CTI" if node.block == MIDDLE.remember else f"for at most {show_duration(node.block)}"
    return f"rows held back {waits}{' or a promise' if node.by else ''}"


def bounded(text: str, known: list[Properties]) -> str:
    return text if all(p.finite for p in known) else f"{text}; rows without end stay for ever"
