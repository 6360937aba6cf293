"""About what promises can come: of every node of a plan the schemes of the punctuations its output may carry.

A scheme is a set of columns. The empty one stands for CTIs, which are about everything. Beside each stands whether
promises about it may be for ever, so that a value of these columns can be done with; progress never is, as it says no
more of a value than how far it has come.

    source with a delay                                () as progress
    source with a delay per machine                    (machine) as progress
    source with punctuations about order_id            (order_id) for ever

A promise passes a node when it is about columns that pass it, and, where rows meet, about columns by which they meet
(`wishes` says which). Where there are several inputs, all must promise: what one says of some columns counts as far as
the others say it of these columns or fewer. A promise to all inputs but CTIs to one is then only as good as the CTIs.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce, singledispatch
from itertools import product

from cedr.operators.patterns import single
from cedr.plan.everywhere import broadcast_inputs
from cedr.plan.node import Node, topological
from cedr.plan.nodes import Finalize, Iterate, Match, Merge, MergeBy, Places, Reach, Sort, Source
from cedr.plan.partition_requirements import passed, wish
from cedr.plan.patterns import ends_with_event
from cedr.temporal.time import INF

Names = tuple[str, ...]
"""Sorted."""
Schemes = Mapping[Names, bool]
"""Sets of columns, and whether promises about them may be for ever."""

CTI: Names = ()


def all_schemes(plan: Node) -> dict[int, Schemes]:
    """The schemes of every node, by its identity."""
    known: dict[int, Schemes] = {}
    for node in topological(plan):
        known[id(node)] = derive(node, *(known[id(i)] for i in node.inputs))
    return known


def reaching(plan: Node) -> dict[int, set[Names]]:
    """Of every node the schemes whose promises reach the end of the plan, on every way that leads there."""
    known = all_schemes(plan)
    found = {id(plan): set(known[id(plan)])}
    for node in reversed(topological(plan)):
        for port, input in enumerate(node.inputs):
            passing = {names for names in known[id(input)] if image(node, port, names, known).keys() & found[id(node)]}
            found[id(input)] = passing & found.get(id(input), passing)
    return found


def image(node: Node, port: int, names: Names, known: Mapping[int, Schemes]) -> Schemes:
    """What becomes of one scheme of an input, when the other inputs promise what they can."""
    inputs = [known[id(i)] for i in node.inputs]
    inputs[port] = {names: inputs[port][names]}
    return derive(node, *inputs)


def settling(plan: Node) -> dict[int, set[str]]:
    """Of every node the columns about which promises would reach the end of the plan, if they came."""
    found = {id(plan): set(plan.schema)}
    for node in reversed(topological(plan)):
        wanted = {inner for out, inner in passing(node).items() if out in found[id(node)]}
        for input, names in zip(node.inputs, by_port(node), strict=True):
            useful = {name for name, first in names.items() if first in wanted}
            found[id(input)] = useful & found.get(id(input), useful)
    return found


# --- one rule per node ---------------------------------------------------------------------------------------------


@singledispatch
def derive(node: Node, *inputs: Schemes) -> Schemes:
    """The schemes of a node from those of its inputs."""
    return shown(node, front(node, inputs))


@derive.register
def _(node: Source) -> Schemes:
    per = tuple(sorted(node.per))
    found = {per: False} if per else {}
    for columns in node.promises:
        names = tuple(sorted(columns))
        found[names] = names != per or node.punctuation is not None
    return {**found, CTI: False} if tells_ctis(node) else found


@derive.register
def _(node: Finalize, input: Schemes) -> Schemes:
    """What is forgotten is settled by a CTI of its own."""
    return input if node.remember == INF else {CTI: False, **input}


@derive.register
def _(node: Match, *inputs: Schemes) -> Schemes:
    """The matches of a single event are its rows, so promises about any column that is shown pass."""
    whole = front(node, inputs)
    if node.bitemporal:
        return narrowed(whole, ())
    if not ends_with_event(node.pattern):
        return shown(node, whole)
    event = node.pattern.leaves()[0]  # what CANCEL-WHEN keeps comes before what it forbids
    of_event = {names: ends for names, ends in inputs[event.port].items() if names != CTI}
    return {**narrowed(whole, ()), **called(of_event, single.shown(node.outputs))}


@derive.register
def _(node: Merge, *inputs: Schemes) -> Schemes:
    """It knows CTIs only. One input that tells them is enough, unless it waits for the slowest."""
    told = [CTI in schemes for schemes in inputs]
    enough = all(told) if node.policy.progress == "slowest" else any(told)
    return {CTI: False} if enough else {}


@derive.register(Iterate)
@derive.register(Places)
@derive.register(Reach)
def _(node: Node, *inputs: Schemes) -> Schemes:
    """What goes round knows CTIs only, and so do places."""
    return {CTI: False} if all(CTI in schemes for schemes in inputs) else {}


@derive.register
def _(node: MergeBy, input: Schemes) -> Schemes:
    """Promises about copies, or CTIs of the whole, become its CTIs."""
    return {CTI: False} if any(set(names) <= by_port(node)[0].keys() for names in input) else {}


@derive.register
def _(node: Sort, input: Schemes) -> Schemes:
    """Nothing is settled further than the first row that is held, and only promises for ever let rows go."""
    return input if input.get(node.by[:1]) else {}


def tells_ctis(source: Source) -> bool:
    """Whether it says how far it has come as a whole. Elements tell it themselves; a delay per key only when silent
    keys are given up."""
    derived = source.delay is not None or source.ordered
    if source.vs is None or source.cti or source.external:
        return True
    return derived and (not source.per or source.idle is not None)


# --- schemes on their way ------------------------------------------------------------------------------------------


def front(node: Node, inputs: Iterable[Schemes], ports: Iterable[int] | None = None) -> Schemes:
    """What all inputs, or those of some ports, promise about the columns by which rows meet.

    The columns have the names of the first input.
    """
    sides = list(inputs)
    met = by_port(node)
    chosen = range(len(sides)) if ports is None else ports
    return combined([renamed(sides[port], met[port]) for port in chosen])


def by_port(node: Node) -> list[dict[str, str]]:
    """Of each input the columns promises may speak about there, and their names in the first one."""
    if isinstance(node, MergeBy):
        return [{name: name for name in (node.column, node.join) if name}]
    if broadcast_inputs(node):  # they know CTIs only
        return [{} for _ in node.inputs]
    keys = [(node.by[0],)] if isinstance(node, Sort) else wish(node)
    if keys is None:
        return [{name: name for name in i.schema} for i in node.inputs]
    return [{key[port]: key[0] for key in keys} for port in range(len(node.inputs))]


def shown(node: Node, schemes: Schemes) -> Schemes:
    """Schemes by the names in the output."""
    names: dict[str, list[str]] = {}
    for out, inner in passing(node).items():
        names.setdefault(inner, []).append(out)
    return called(schemes, names)


def called(schemes: Schemes, names: Mapping[str, Sequence[str]]) -> Schemes:
    """By other names, of which a column may have several, or none."""
    found: dict[Names, bool] = {}
    for columns, ends in schemes.items():
        for chosen in product(*(names.get(name, ()) for name in columns)):
            found[tuple(sorted(chosen))] = ends
    return found


def passing(node: Node) -> dict[str, str]:
    """The columns that promises about the output of a node may speak about, and what promises below call them."""
    if isinstance(node, Merge | MergeBy):
        return {}
    return {name: name for name in node.schema} if isinstance(node, Sort) else passed(node)


def renamed(schemes: Schemes, names: Mapping[str, str]) -> Schemes:
    """Those that speak only of these columns, by their new names."""
    return {
        tuple(sorted(names[name] for name in columns)): ends
        for columns, ends in schemes.items()
        if set(columns) <= names.keys()
    }


def narrowed(schemes: Schemes, columns: Iterable[str]) -> Schemes:
    """Those that speak only of these columns."""
    return renamed(schemes, {name: name for name in columns})


def combined(sides: Iterable[Schemes]) -> Schemes:
    return reduce(both, sides)


def both(one: Schemes, two: Schemes) -> Schemes:
    """What two inputs promise together: about the larger of two sets of columns, of which one holds the other."""
    found: dict[Names, bool] = {}
    for (mine, ends), (theirs, they_end) in product(one.items(), two.items()):
        large, small = (mine, theirs) if len(mine) >= len(theirs) else (theirs, mine)
        if set(small) <= set(large):
            found[large] = found.get(large, False) or (ends and they_end)
    return found
