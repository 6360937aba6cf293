"""`explain`: the plan as written, the rules that fired, the plan that runs, its operators and what they wait for, and
its stages, as plain text.
"""

from collections.abc import Iterable
from itertools import groupby

from cedr.plan.analysis.findings import Finding, analyse
from cedr.plan.aspects.properties import Properties
from cedr.plan.fragment import Fragment
from cedr.plan.node import Node, topological
from cedr.plan.nodes import Level, Source
from cedr.plan.optimizer import RULES, Rule, optimize
from cedr.plan.partitioning import Exchange, describe_keys, staged
from cedr.plan.properties import all_properties
from cedr.plan.tree import tree
from cedr.temporal.errors import QueryError


def explain(query: Level, rules: tuple[Rule, ...] = RULES) -> str:
    plan, fired = optimize(query, rules)
    known = all_properties(plan)
    sections = {
        "Plan as written": tree(query.input, below=lambda node: node.details()),
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
    lines = [f"  {finding.node.describe()}: {finding}" for finding in found]
    return lines + [f"  missing: {text}" for text in missing] or ["  nothing waits and nothing is kept"]


def counted(names: Iterable[str]) -> list[str]:
    """Runs of the same name as one line."""
    runs = [(name, len(list(run))) for name, run in groupby(names)]
    return [f"{name} x {n}" if n > 1 else name for name, n in runs]


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
        state = node.describe_state([known[id(i)] for i in node.inputs])
        lines.append(f"  {len(lines)} {type(node).__name__} <- {feeds}: {state}")
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
    return "to every shard" if exchange.broadcast else describe_keys(exchange.keys)


def through(source: str, fragment: Fragment) -> str:
    return f"{source} through {', '.join(step.name for step in fragment.steps)}" if fragment.steps else source
