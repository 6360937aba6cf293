"""Streams: validity, canonical history, and the classes ordered, perfect and closed.

A stream is *valid* when it keeps its own promises: nothing below a CTI, every adjust names a tuple that exists, and
external CTIs neither overlap nor count too few.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from cedr.temporal.element import Adjust, Cti, Data, Element, ExternalCti, Insert, Stream
from cedr.temporal.errors import StreamError
from cedr.temporal.history import Event, History
from cedr.temporal.punctuation import Punctuation
from cedr.temporal.table import text_table
from cedr.temporal.time import MIN, show


class Relation:
    """The changing relation behind a stream, kept up to date element by element.

    `apply` either applies an element or raises a `StreamError` and changes nothing, so an invalid element never
    affects the others.
    """

    def __init__(self) -> None:
        self._bag: Counter[Event] = Counter()
        self._syncs: Counter[int] = Counter()
        self._spans: list[ExternalCti] = []
        self._punctuations: list[Punctuation] = []
        self._arrived = 0
        self.cti = MIN

    def apply(self, element: Element) -> None:
        broken = self._broken_promise(element)
        position, self._arrived = self._arrived, self._arrived + 1
        if broken:
            raise StreamError(element, position, broken)
        match element:
            case Cti(t):
                self.cti = t
            case Punctuation() if not element.attributes:
                self.cti = max(self.cti, element.before)
            case Punctuation():
                self._punctuations.append(element)
            case ExternalCti():
                self._spans.append(element)
            case Insert(vs, ve, p):
                self._bag[Event(vs, ve, p)] += 1
                self._syncs[element.sync] += 1
            case Adjust(vs, ve, ve_new, p):
                self._bag[Event(vs, ve, p)] -= 1
                if not self._bag[Event(vs, ve, p)]:
                    del self._bag[Event(vs, ve, p)]
                if not element.removes:
                    self._bag[Event(vs, ve_new, p)] += 1
                self._syncs[element.sync] += 1

    def _broken_promise(self, element: Element) -> str | None:
        if isinstance(element, ExternalCti):
            return self._broken_count(element)
        if isinstance(element, Punctuation):
            return None
        if element.sync < self.cti:
            return (
                f"its sync time {show(element.sync)} lies before {show(self.cti)}, "
                f"but cti {show(self.cti)} promised that nothing before it would come"
            )
        if isinstance(element, Cti):
            for span in self._spans:
                if self.cti < span.ve <= element.t and (received := self._received(span)) < span.n:
                    return f"only {received} of the {span.n} elements came that {span} promised before it"
        if isinstance(element, Adjust) and Event(element.vs, element.ve, element.payload) not in self._bag:
            return self._unknown_tuple(element)
        if isinstance(element, Insert | Adjust):
            for promise in self._punctuations:
                if promise.forbids(element.payload, element.sync):
                    return f"it was promised: {promise}"
            for span in self._spans:
                if element.sync in span.span and self._received(span) == span.n:
                    return f"{span} promised no more than {span.n} elements with a sync time in it, all came before"
        return None

    def _unknown_tuple(self, adjust: Adjust) -> str:
        similar = [e for e in self._bag if e.vs == adjust.vs and e.payload == adjust.payload]
        what = f"there is no tuple {adjust.payload} {adjust.lifetime} to adjust"
        if similar:
            ends = ", ".join(show(e.ve) for e in sorted(similar, key=lambda e: e.ve))
            return f"{what}; with this start and payload there are only ends at {ends}"
        return f"{what}; it was never inserted, or was removed"

    def _broken_count(self, external: ExternalCti) -> str | None:
        for other in self._spans:
            if other.span.overlaps(external.span):
                return f"it overlaps {other}; spans of external CTIs must not share an instant"
        received = self._received(external)
        if received > external.n:
            return f"it promises {external.n} elements with a sync time in {external.span}, but {received} came already"
        if received < external.n and external.ve <= self.cti:
            return f"it promises {external.n} elements, but {received} came before cti {show(self.cti)} excluded more"
        return None

    def _received(self, external: ExternalCti) -> int:
        return sum(n for sync, n in self._syncs.items() if sync in external.span)

    def history(self) -> History:
        return History(self._bag.elements())


def relations(stream: Iterable[Element]) -> Iterator[History]:
    """The canonical history after each element: the changing relation, step by step."""
    relation = Relation()
    for element in stream:
        relation.apply(element)
        yield relation.history()


def validate(stream: Iterable[Element]) -> None:
    """Raise a `StreamError` for the first element that breaks a promise."""
    relation = Relation()
    for element in stream:
        relation.apply(element)


def violations(stream: Iterable[Element]) -> list[StreamError]:
    """All elements that break a promise; each is checked as if invalid elements before it had not arrived."""
    relation = Relation()
    found = []
    for element in stream:
        try:
            relation.apply(element)
        except StreamError as error:
            found.append(error)
    return found


def canonical(stream: Iterable[Element]) -> History:
    """The history of a valid stream after all adjusts (the bitemporal converter of the speculative paper)."""
    relation = Relation()
    for element in stream:
        relation.apply(element)
    return relation.history()


def data(stream: Iterable[Element]) -> list[Data]:
    """The inserts and adjusts, in arrival order."""
    return [e for e in stream if isinstance(e, Insert | Adjust)]


def timed(stream: Iterable[Element]) -> list[Data | Cti]:
    """All elements that have a sync time."""
    return [e for e in stream if isinstance(e, Insert | Adjust | Cti)]


def ctis(stream: Iterable[Element]) -> list[int]:
    return [e.t for e in stream if isinstance(e, Cti)]


def ordered(stream: Iterable[Element]) -> bool:
    """No element, CTIs included, has a smaller sync time than one before it (Definition 3)."""
    syncs = [e.sync for e in timed(stream)]
    return syncs == sorted(syncs)


def perfect(stream: Iterable[Element]) -> bool:
    """Ordered and without adjusts (Definition 4)."""
    elements = list(stream)
    return ordered(elements) and not any(isinstance(e, Adjust) for e in elements)


def closed_up_to(stream: Iterable[Element]) -> int:
    """The largest CTI (Lemma 3): everything before it is final. MIN when there is none."""
    return max(ctis(stream), default=MIN)


def closed_at(stream: Iterable[Element], t: int) -> bool:
    return closed_up_to(stream) >= t


def closed(stream: Stream) -> bool:
    """It ends with a CTI past the sync time of everything else (Definition 5)."""
    if not stream or not isinstance(last := stream[-1], Cti):
        return False
    return all(e.sync < last.t for e in timed(stream[:-1]))


def up_to(stream: Iterable[Element], t: int) -> list[Element]:
    """The elements with sync time before t: all that can matter before t."""
    return [e for e in timed(stream) if e.sync < t]


def equivalent(
    left: Iterable[Element], right: Iterable[Element], *, to: int | None = None, at: int | None = None
) -> bool:
    """Logical equivalence (Definition 1): the same canonical history, whole, *to* a time or *at* a time."""
    return restrict(canonical(left), to, at) == restrict(canonical(right), to, at)


def restrict(history: History, to: int | None = None, at: int | None = None) -> History:
    if to is not None:
        history = history.to(to)
    return history if at is None else history.at(at)


def chain_numbers(elements: Iterable[Data]) -> list[int]:
    """For each insert and adjust the number of its chain. Among equal tuples the oldest is adjusted first."""
    relation = Relation()
    waiting: dict[Event, list[int]] = {}
    numbers: list[int] = []
    inserts = 0
    for element in elements:
        relation.apply(element)
        if isinstance(element, Insert):
            number, end = inserts, element.ve
            inserts += 1
        else:
            number, end = waiting[Event(element.vs, element.ve, element.payload)].pop(0), element.ve_new
        waiting.setdefault(Event(element.vs, end, element.payload), []).append(number)
        numbers.append(number)
    return numbers


def chains(stream: Iterable[Element]) -> list[list[Data]]:
    """The inserts, each with its adjusts in order."""
    elements = data(stream)
    found: dict[int, list[Data]] = {}
    for number, element in zip(chain_numbers(elements), elements, strict=True):
        found.setdefault(number, []).append(element)
    return list(found.values())


def stream_table(stream: Iterable[Element]) -> str:
    """The stream as the papers print physical streams, in arrival order."""
    return text_table(["Type", "Vs", "Ve", "Vnewe", "(Payload)"], map(stream_row, stream))


def stream_row(element: Element) -> list[str]:
    match element:
        case Insert(vs, ve, p):
            return ["Insert", show(vs), show(ve), "", str(p)]
        case Adjust(vs, ve, ve_new, p):
            kind = "Retract" if element.retracts else "Extend"
            return [kind, show(vs), show(ve), show(ve_new), str(p)]
        case Cti(t):
            return ["CTI", show(t), "", "", ""]
        case Punctuation(patterns, before):
            return ["Punctuation", show(before), "", "", ", ".join(f"{n}={p}" for n, p in patterns.items())]
        case ExternalCti(vs, ve, n):
            return ["ExternalCTI", show(vs), show(ve), "", str(n)]
