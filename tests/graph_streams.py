"""Random graphs as streams, for tests of loops: few nodes, so that cycles, and several ways, are common."""

from itertools import groupby, pairwise
from random import Random

import polars as pl
from hypothesis import strategies as st
from plan.catalogue import AsOperator

from cedr.api import source_of_keys
from cedr.stream import Stream
from cedr.temporal import END, INF, Adjust, Cti, Element, Insert, Row
from cedr.testing import rows

EDGES = {"start": pl.Int64, "end": pl.Int64}
GRAPHS = {**EDGES, "length": pl.Int64}
LINKS = rows(start=st.integers(0, 2), end=st.integers(0, 2))
WEIGHED = rows(start=st.integers(0, 2), end=st.integers(0, 2), length=st.integers(0, 3))
NODES = rows(node=st.integers(0, 2))


def links(name: str = "a", **options) -> Stream:
    return source_of_keys(name, EDGES, **options)


def weighed(**options) -> Stream:
    return source_of_keys("a", GRAPHS, **options)


AsPorts = AsOperator


def busy_graph(random: Random, edges: int, nodes: int, weighed: bool = False) -> list[Element]:
    """Many edges that come, are corrected and go, in no order: denser than what hypothesis draws, so that rows that
    derive each other lose what they came from again and again."""
    chains = []
    for _ in range(edges):
        values = {"start": random.randrange(nodes), "end": random.randrange(nodes)}
        p = Row(values, **({"length": random.randrange(4)} if weighed else {}))
        vs = random.randrange(12)
        ends = [random.choice([vs + random.randint(1, 10), INF]) for _ in range(random.randint(1, 3))]
        ends += [vs] * (random.random() < 0.3)
        ends = [end for end, _ in groupby(ends)]
        chains.append([Insert(vs, ends[0], p), *(Adjust(vs, old, new, p) for old, new in pairwise(ends))])
    places = [number for number, chain in enumerate(chains) for _ in chain]
    random.shuffle(places)
    rest = [iter(chain) for chain in chains]
    elements = [next(rest[number]) for number in places]
    return [e for i, element in enumerate(elements) for e in (element, *promise(random, elements[i + 1 :]))] + [END]


def promise(random: Random, coming: list[Element]) -> list[Element]:
    """A CTI now and then, as high as what still comes allows."""
    return [Cti(min((e.sync for e in coming), default=30))] if random.random() < 0.3 else []


def in_slices(random: Random, stream: list[Element]) -> list[tuple[int, list[Element]]]:
    cuts = sorted(random.randrange(len(stream)) for _ in range(random.choice([0, 5, len(stream)])))
    return [(0, stream[start:end]) for start, end in pairwise([0, *cuts, len(stream)])]
