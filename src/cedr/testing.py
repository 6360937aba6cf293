"""Random streams for testing queries: the same strategies cedr is tested with. Needs `hypothesis`.

    from hypothesis import given
    from cedr import testing

    @given(testing.streams())
    def test_my_query(stream): ...

`histories` draws final histories; `streams_of` draws streams of a history, with disorder, provisional ends that are
adjusted later, events that are removed again, CTIs as early as possible, and pauses without data. The result of a query
must depend on the history alone: `same_history` draws two streams of one history, `shuffled` another order in which a
stream's promises hold, `punctuated` the stream with promises about parts of it, `repackaged` the same table cut into
other events, and `slicings` a stream in chunks.

Frequently used strategies are cached: hypothesis takes longer to validate a new strategy than to draw from it.
"""

import warnings
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any

from hypothesis import strategies as st

from cedr.temporal import END, INF, Adjust, Cti, Data, Element, Event, ExternalCti, History, Insert, Interval, Row
from cedr.temporal.punctuation import ANY, OneOf, Pattern, Punctuation, Range
from cedr.temporal.stream import timed

PAYLOADS = st.sampled_from("ABC")
"""Few different payloads, so that copies and ties are common."""

MAX_TIME = 20

BOOLEANS = st.booleans()


@lru_cache(maxsize=4096)
def between(low: int, high: int) -> st.SearchStrategy[int]:
    """Whole numbers, both ends included."""
    return st.integers(low, high)


def rows(**attributes: st.SearchStrategy[Any]) -> st.SearchStrategy[Row]:
    """Payloads with named attributes: `rows(machine=st.integers(0, 2), load=st.floats(0, 1))`."""
    return st.builds(Row, st.fixed_dictionaries(attributes))


def times(max_time: int = MAX_TIME) -> st.SearchStrategy[int]:
    return between(0, max_time)


@lru_cache(maxsize=64)
def lifetimes(max_time: int = MAX_TIME, infinite: bool = True) -> st.SearchStrategy[Interval]:
    finite = st.tuples(times(max_time), between(1, max_time)).map(lambda t: Interval(t[0], t[0] + t[1]))
    endless = times(max_time).map(lambda start: Interval(start, INF))
    return st.one_of(finite, finite, finite, endless) if infinite else finite


@lru_cache(maxsize=64)
def events(
    payloads: st.SearchStrategy[Any] = PAYLOADS, max_time: int = MAX_TIME, infinite: bool = True
) -> st.SearchStrategy[Event]:
    return st.builds(lambda life, p: Event(life.start, life.end, p), lifetimes(max_time, infinite), payloads)


def histories(
    payloads: st.SearchStrategy[Any] = PAYLOADS,
    max_size: int = 8,
    max_time: int = MAX_TIME,
    infinite: bool = True,
) -> st.SearchStrategy[History]:
    """Final histories. Equal events may occur several times."""
    return st.lists(events(payloads, max_time, infinite), max_size=max_size).map(History)


# --- one history, many streams -----------------------------------------------------------------------------------


@st.composite
def streams_of(
    draw: st.DrawFn,
    history: History,
    *,
    payloads: st.SearchStrategy[Any] | None = None,
    adjusts: bool = True,
    growing: bool = True,
    ghosts: int = 2,
    ctis: bool = True,
    ordered: bool = False,
    closed: bool = False,
) -> list[Element]:
    """A valid stream whose canonical history is `history`.

    `adjusts`: ends may be wrong at first; `growing`: too early as well as too late. `ghosts`: the maximum number of
    events that are inserted and then removed; their payloads come from `payloads`, else from the history. `ctis`: there
    may be CTIs between the elements. `ordered`: sync times never decrease. `closed`: it ends with the CTI of infinity.
    """
    chains = [draw(chains_to(e, adjusts=adjusts, growing=growing, ordered=ordered)) for e in history]
    if adjusts and ghosts:
        if payloads is None:
            payloads = st.sampled_from([e.payload for e in history]) if len(history) else PAYLOADS
        for vs, ve, p in draw(few(events(payloads), ghosts)):
            chains += [[Insert(vs, ve, p), Adjust(vs, ve, vs, p)]]
    if ordered:
        elements = sorted((e for chain in chains for e in chain), key=lambda e: (e.sync, isinstance(e, Adjust)))
    else:
        elements = draw(interleavings(chains))
    if not ctis:
        return [*elements, END] if closed else list(elements)
    return draw(promised(elements, ordered=ordered, closed=closed))


@lru_cache(maxsize=256)
def few(values: st.SearchStrategy[Any], max_size: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, max_size=max_size)


@lru_cache(maxsize=256)
def ends_after(start: int) -> st.SearchStrategy[int]:
    return st.one_of(between(start + 1, start + MAX_TIME), st.just(INF))


@st.composite
def chains_to(draw: st.DrawFn, event: Event, *, adjusts: bool, growing: bool, ordered: bool) -> list[Data]:
    """The elements of one event: an insert, then adjusts up to its final end."""
    ends = [event.ve]
    if adjusts:
        ends = [*draw(few(ends_after(event.vs), 1 if ordered else 2)), event.ve]
    if not growing or ordered:
        ends = sorted((end for end in ends if end >= event.ve), reverse=True)
    ends = [end for end, _ in groupby(ends)]
    first = Insert(event.vs, ends[0], event.payload)
    return [first, *(Adjust(event.vs, old, new, event.payload) for old, new in pairwise(ends))]


@st.composite
def interleavings(draw: st.DrawFn, chains: Sequence[Sequence[Data]]) -> list[Data]:
    """The elements of all chains in a random order that keeps the order inside each chain."""
    order = draw(st.permutations([number for number, chain in enumerate(chains) for _ in chain]))
    rest = [iter(chain) for chain in chains]
    return [next(rest[number]) for number in order]


@st.composite
def promised(
    draw: st.DrawFn, elements: Sequence[Data], *, ordered: bool = False, closed: bool = False
) -> list[Element]:
    """The elements with CTIs between them, each as high as the following elements allow, or lower."""
    result: list[Element] = []
    last = 0
    for position in range(len(elements) + 1):
        limit = min((e.sync for e in elements[position:]), default=2 * MAX_TIME)
        while limit >= last and draw(between(0, 3)) == 3:
            last = draw(between(last, limit))
            result.append(Cti(last))
        result += elements[position : position + 1]
        if ordered and position < len(elements):
            last = max(last, elements[position].sync)
    return [*result, END] if closed else result


def punctuated(
    stream: Sequence[Element],
    attributes: dict[str, Sequence[Any]],
    max_punctuations: int = 6,
    *,
    ranges: bool = True,
    exact: bool = False,
    most: int | None = None,
) -> st.SearchStrategy[list[Element]]:
    """A valid stream with punctuations between its elements, all of which hold.

    `attributes` are the values of attributes, in order. `ranges`: also lists and ranges, else constants only. `exact`:
    each punctuation reaches as far as the following elements allow, else possibly less far. `most` is the former name
    of `max_punctuations`; it is deprecated.
    """
    if most is not None:
        text = "punctuated: most= is now max_punctuations=; the old name will be removed in the next version"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        max_punctuations = most
    return with_punctuations(stream, attributes, max_punctuations, ranges, exact)


@st.composite
def with_punctuations(
    draw: st.DrawFn,
    stream: Sequence[Element],
    attributes: dict[str, Sequence[Any]],
    max_punctuations: int,
    ranges: bool,
    exact: bool,
) -> list[Element]:
    result = list(stream)
    some = st.sets(st.sampled_from(sorted(attributes)), min_size=1, max_size=2)
    strategies = {name: patterns_of(values, ranges) for name, values in attributes.items()}
    for _ in range(draw(between(0, max_punctuations))):
        patterns = {name: draw(strategies[name]) for name in sorted(draw(some))}
        place = draw(between(0, len(result)))
        coming = [e for e in result[place:] if isinstance(e, Insert | Adjust)]
        meant = Punctuation(patterns)
        if not meant.attributes:
            continue  # a CTI, after which a lower one would break it
        limit = min((e.sync for e in coming if meant.about(e.payload)), default=INF)
        before = limit if exact or draw(BOOLEANS) else draw(between(0, min(limit, 2 * MAX_TIME)))
        result.insert(place, Punctuation(patterns, before))
    return result


def patterns_of(values: Sequence[Any], ranges: bool = True) -> st.SearchStrategy[Pattern]:
    """Patterns about an attribute that has these values, which are in order."""
    constant = st.sampled_from(values).map(lambda v: OneOf([v]))
    if not ranges:
        return constant
    some = st.lists(st.sampled_from(values), min_size=1, unique=True).map(OneOf)
    ends = st.one_of(st.none(), st.sampled_from(values))
    pairs = st.tuples(ends, ends).filter(lambda p: None in p or values.index(p[0]) <= values.index(p[1]))
    return st.one_of(constant, some, pairs.map(lambda p: Range(*p) if p != (None, None) else ANY))


def streams(
    payloads: st.SearchStrategy[Any] = PAYLOADS,
    max_size: int = 6,
    max_time: int = MAX_TIME,
    infinite: bool = True,
    **options: Any,
) -> st.SearchStrategy[list[Element]]:
    """Random valid streams. `options` are those of `streams_of`."""
    return histories(payloads, max_size, max_time, infinite).flatmap(
        lambda h: streams_of(h, payloads=payloads, **options)
    )


@st.composite
def same_history(
    draw: st.DrawFn, /, payloads: st.SearchStrategy[Any] = PAYLOADS, max_size: int = 6, **options: Any
) -> tuple[list[Element], list[Element]]:
    """Two logically equivalent streams: different elements with the same canonical history."""
    history = draw(histories(payloads, max_size))
    one = draw(streams_of(history, payloads=payloads, **options))
    return one, draw(streams_of(history, payloads=payloads, **options))


@st.composite
def shuffled(draw: st.DrawFn, stream: Sequence[Element]) -> list[Element]:
    """The elements of a valid stream in another order, in which all its promises still hold.

    Elements with the same start and payload keep their order, as they may form one chain. A CTI stays after everything
    it would exclude; all other elements may move.
    """
    waiting = list(timed(stream))
    result: list[Element] = []
    while waiting:
        ready = [i for i, e in enumerate(waiting) if not any(must_precede(before, e) for before in waiting[:i])]
        ready = [i for i in ready if not outlived(waiting[i], waiting)]
        result.append(waiting.pop(draw(st.sampled_from(ready))))
    return result


def must_precede(first: Element, second: Element) -> bool:
    match first, second:
        case (Cti(), Cti()) | (ExternalCti(), _) | (_, ExternalCti()):
            return True
        case (Insert() | Adjust(), Insert() | Adjust()):
            return (first.vs, first.payload) == (second.vs, second.payload)
    return False


def outlived(element: Element, waiting: Sequence[Element]) -> bool:
    """Whether this CTI would exclude an element that is still to come."""
    return isinstance(element, Cti) and any(e.sync < element.t for e in timed(waiting) if not isinstance(e, Cti))


# --- one table, many histories; one stream, many slices ------------------------------------------------------------


@st.composite
def repackaged(draw: st.DrawFn, history: History) -> History:
    """A history with the same content at every instant, its lifetimes cut into other events."""
    pieces: list[Event] = []
    for e in history.coalesce() if draw(BOOLEANS) else history:
        inside = between(e.vs + 1, min(e.ve, e.vs + 2 * MAX_TIME) - 1)
        cuts = draw(st.sets(inside, max_size=2)) if e.ve - e.vs > 1 else set()
        pieces += [Event(vs, ve, e.payload) for vs, ve in pairwise([e.vs, *sorted(cuts), e.ve])]
    return History(pieces)


@st.composite
def slicings(draw: st.DrawFn, stream: Sequence[Element]) -> list[list[Element]]:
    """The stream in slices: one element each, all in one, or anything between; empty slices occur."""
    cuts = [0, *draw(cuts_of(len(stream))), len(stream)]
    return [list(stream[start:end]) for start, end in pairwise(cuts)]


@lru_cache(maxsize=256)
def cuts_of(size: int) -> st.SearchStrategy[list[int]]:
    anywhere = st.lists(between(0, size), max_size=size + 2).map(sorted)
    return st.one_of(st.just(list(range(1, size))), st.just([]), anywhere)


# --- assertions that explain themselves --------------------------------------------------------------------------


def assert_same(actual: History, expected: History) -> None:
    """Fail with both differences printed as tables."""
    if actual != expected:
        raise AssertionError(difference_report(actual, expected))


def assert_same_snapshots(actual: History, expected: History) -> None:
    """Fail unless both are the same table at every instant, regardless of how it is cut into events."""
    assert_same(actual.coalesce(), expected.coalesce())


def difference_report(actual: History, expected: History) -> str:
    return f"the histories differ; missing:\n{expected - actual}\nnot expected:\n{actual - expected}"
