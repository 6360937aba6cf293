"""What would help an operator that waits or grows for ever, naming what the user declared."""

from collections.abc import Collection, Iterator

from cedr.plan.aspects.progress import RequiredPromise
from cedr.plan.node import Node
from cedr.plan.nodes import Align, Source


def advice(node: Node, required: RequiredPromise, useful: Collection[str]) -> str:
    """What would provide a required promise. `useful`: the columns of its output that later operators use."""
    met = [useful] if isinstance(node, Align) else node.promised_by_port
    sources: dict[str, tuple[Source, tuple[str, ...]]] = {}
    for port in required.ports:
        for source, columns in origins(node.inputs[port], met[port]):
            sources.setdefault(source.name, (source, columns))
    if required.without_end:
        spoken_of = [(source, columns) for source, columns in sources.values() if columns]
        punctuations = " and ".join(
            f"punctuations of source {s.name!r}{about(columns)}{undeclared(s)}" for s, columns in spoken_of
        )
        promised = f"{punctuations} that state {required.done}" if punctuations else ""
        ends = " and ".join(repr(source.name) for source in could_end(node))
        end = f"ends=True for source {ends}, if each of its rows has an end" if ends else ""
        return "; or ".join(text for text in (promised, end, required.instead) if text)
    silent = [(source, columns) for source, columns in sources.values() if not source.reports_ctis]
    return "; ".join(progress(source, columns) for source, columns in silent)


def could_end(node: Node) -> list[Source]:
    """The sources whose lifetimes are those of the rows that a node takes in, and might be declared to end."""
    found: dict[int, Node] = {}
    waiting = list(reversed(node.inputs))
    while waiting:
        below = waiting.pop()
        if id(below) in found:
            continue
        found[id(below)] = below
        if below.keeps_lifetimes:
            waiting += reversed(below.inputs)
    named = {source.name: source for source in found.values() if isinstance(source, Source) and is_open(source)}
    return list(named.values())


def is_open(source: Source) -> bool:
    """May an end be missing in its table?"""
    return not source.ends and (source.ve is not None or isinstance(source.duration, str))


def progress(source: Source, columns: tuple[str, ...]) -> str:
    """How a source could report progress."""
    punctuations = f", or with punctuations{about(columns)}{undeclared(source)}" if columns else ""
    if source.progress_by:
        per = ", ".join(source.progress_by)
        problem = f"source {source.name!r} reports the progress of each {per}, but not of all together"
        return f"{problem}; declare it with idle, after which a silent {per} is given up{punctuations}"
    problem = f"source {source.name!r} makes no promise about progress"
    return f'{problem}; declare it with delay="10s", or with cti="column" if its rows carry progress{punctuations}'


def undeclared(source: Source) -> str:
    """A hint for a source that reads punctuations without declaring what they are about."""
    return (
        " (if its punctuations are, declare them with promises=[...])"
        if source.punctuation and not source.promises
        else ""
    )


def about(columns: tuple[str, ...]) -> str:
    if len(columns) == 1:
        return f" about {columns[0]}"
    return f" about one or more of {', '.join(columns)}" if columns else ""


def origins(top: Node, columns: Collection[str]) -> Iterator[tuple[Source, tuple[str, ...]]]:
    """The sources below a node, each with the columns it has there; promises about these come through as they are.

    What several users share is looked at once for each set of columns: the paths to it may be exponentially many.
    """
    seen: set[tuple[int, frozenset[str]]] = set()
    waiting = [(top, frozenset(columns))]
    while waiting:
        node, names = waiting.pop()
        if (id(node), names) in seen:
            continue
        seen.add((id(node), names))
        if isinstance(node, Source):
            yield node, tuple(name for name in node.schema if name in names)
            continue
        below = node.promised_columns
        wanted = {below[name] for name in names if name in below}
        inputs = zip(node.inputs, node.promised_by_port, strict=True)
        waiting += reversed([(i, frozenset(n for n, first in met.items() if first in wanted)) for i, met in inputs])
